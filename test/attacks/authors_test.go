package attacks_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/google/uuid"

	cni "github.com/bcsnet/bcsnet/pkg/cni/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// authors are attacks by who may write a NetworkAttachmentDefinition, or files on a node without being root, and by a
// DEL that names no pod.
func authors() []attack {
	return []attack{
		{"files_that_a_network_names", namedFiles}, {"token_that_is_a_link", linkedToken},
		{"directory_that_others_write", writableDirectory}, {"DEL_without_a_pod", delWithoutPod},
	}
}

// onNode returns the plugin as the installer's pod leaves it on the attacker's node, and the directory of its files.
func (w *world) onNode(t *testing.T) (p *cni.Plugin, dir string, log *bytes.Buffer) {
	t.Helper()
	root := t.TempDir()
	dir, log = filepath.Join(root, "bcsnet.d"), &bytes.Buffer{}
	text, err := json.Marshal(object{
		"cluster": "c1", "host": mine, "serverName": serverName, "dataDir": root + "/data", "runDir": root + "/run",
		"replicas": []string{strings.Replace(shared.strict.URL, "http:", "https:", 1)},
	})
	if err := errors.Join(err, os.Mkdir(dir, 0o700), os.WriteFile(dir+"/config.json", text, 0o600),
		os.WriteFile(dir+"/ca.crt", w.bundle, 0o600), os.WriteFile(dir+"/token", []byte(w.node), 0o600)); err != nil {
		t.Fatal(err)
	}
	p = cni.New(io.Discard, log)
	p.ConfigDir = dir
	return p, dir, log
}

// attaching returns a call for the attacker's pod, by a network with more fields in its section ipam.
func attaching(more string) *skel.CmdArgs {
	return &skel.CmdArgs{
		ContainerID: strings.ReplaceAll(uuid.NewString(), "-", ""), IfName: "eth0",
		Args:      "IgnoreUnknown=1;K8S_POD_NAMESPACE=" + shop + ";K8S_POD_NAME=web-mine",
		StdinData: fmt.Appendf(nil, `{"cniVersion":"1.1.0","name":"lan","ipam":{"type":"bcsnet-ipam"%s}}`, more),
	}
}

// A network names the files of a volume of its author, where the token is a link to another pod's, and a server of his.
// The node asks its own replicas by its own files all the same, and writes nothing there.
func namedFiles(t *testing.T, w *world) {
	var heard []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		heard = append(heard, q.Header.Get("Authorization"))
	}))
	defer server.Close()
	p, dir, _ := w.onNode(t)
	volume := t.TempDir()
	config := fmt.Sprintf(`{"host":%q,"serverName":"example.com","replicas":[%q]}`, mine, server.URL)
	if err := errors.Join(os.WriteFile(volume+"/config.json", []byte(config), 0o644), os.Symlink(dir+"/token", volume+"/token")); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{
		fmt.Sprintf(`,"configDir":%q`, volume), fmt.Sprintf(`,"runDir":%q,"dataDir":%q,"logDir":%q`, volume, volume, volume),
		fmt.Sprintf(`,"netserviceEndpoint":%q,"serverName":"example.com","cluster":"another"`, server.URL),
	} {
		args := attaching(more)
		if err := errors.Join(p.Funcs().Add(args), p.Funcs().Del(args)); err != nil {
			t.Errorf("%s: %v", more, err)
		}
	}
	files, err := os.ReadDir(volume)
	if len(heard) > 0 || len(files) != 2 || err != nil {
		t.Errorf("the author heard %q, and his volume has %v, %v", heard, files, err)
	}
}

func linkedToken(t *testing.T, w *world) {
	p, dir, log := w.onNode(t)
	elsewhere := filepath.Join(t.TempDir(), "token")
	if err := errors.Join(os.WriteFile(elsewhere, []byte(w.theirNode), 0o600), os.Remove(dir+"/token"),
		os.Symlink(elsewhere, dir+"/token")); err != nil {
		t.Fatal(err)
	}
	if err := p.Funcs().Add(attaching("")); err == nil || !strings.Contains(err.Error(), "it is a link") {
		t.Errorf("ADD: %v", err)
	}
	del := attaching("")
	del.ContainerID = fmt.Sprint(w.victim["containerID"])
	if err := p.Funcs().Del(del); err != nil || !strings.Contains(log.String(), "it is a link") {
		t.Errorf("DEL: %v, %s", err, log)
	}
}

func writableDirectory(t *testing.T, w *world) {
	p, dir, _ := w.onNode(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := p.Funcs().Add(attaching("")); err == nil || !strings.Contains(err.Error(), "somebody else's than root's") {
		t.Errorf("ADD: %v", err)
	}
}

// A DEL without a pod frees what the caller may free: by a node's token on the node's hosts, and by the token of a
// namespace nothing, as it says nothing of the namespace.
func delWithoutPod(t *testing.T, w *world) {
	bare := func(of object, host string) object {
		return object{"host": host, "containerID": of["containerID"]}
	}
	freed := func(token string, body object) int {
		h := w.send(t, ask{token: token, method: "DELETE", path: prefix, body: body})
		return len(h.done(t, "DEL")["ips"].([]any))
	}
	w.send(t, ask{token: w.node, method: "DELETE", path: prefix, body: bare(w.victim, theirs)}).
		refused(t, "another node's host", ipam.ReasonNotPermitted)
	if n := freed(w.node, bare(w.victim, mine)); n != 0 {
		t.Errorf("%d addresses of another host are free", n)
	}
	w.send(t, ask{token: w.tenant, method: "DELETE", path: prefix, body: bare(w.victim, theirs)}).
		refused(t, "the rights of one namespace", ipam.ReasonNotPermitted)
	if n := freed(w.tenant, with(bare(w.victim, theirs), "podNamespace", tenant)); n != 0 {
		t.Errorf("%d addresses of another namespace are free", n)
	}
	own := w.add("web-mine", mine)
	w.send(t, ask{token: w.node, method: "POST", path: prefix, body: own}).done(t, "the own pod")
	if n := freed(w.node, bare(own, mine)); n != 1 {
		t.Errorf("%d addresses of the own container are free", n)
	}
}
