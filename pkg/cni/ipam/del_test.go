package ipam

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"

	"github.com/bcsnet/bcsnet/pkg/cni/attach"
	"github.com/bcsnet/bcsnet/pkg/cni/undelivered"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// TestDELOvertakenByAnADD has a DEL whose interface is attached again while the allocator is asked: what the new ADD
// got stays, and no record is left that would free it.
func TestDELOvertakenByAnADD(t *testing.T) {
	dir := t.TempDir()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked++
		err := attach.In(dir + "/r").Write(&attach.Attachment{
			ContainerID: "3f4e", IfName: "eth0", Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.21")},
		})
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusConflict)
		fmt.Fprintf(w, `{"code":2,"result":false,"data":null,"message":"asked for since","reason":"ReleaseOutdated","request_id":%q}`,
			q.Header.Get("X-Request-Id"))
	}))
	defer server.Close()
	var out, log bytes.Buffer
	err := onNode(t, dir, &out, &log, server.URL).Funcs().Del(&skel.CmdArgs{ContainerID: "3f4e", IfName: "eth0", StdinData: configured("")})
	if err != nil || !strings.Contains(log.String(), "asked for since (ReleaseOutdated)") {
		t.Errorf("DEL: %v, with notes %q", err, &log)
	}
	if n, err := undelivered.In(dir + "/v").Len(); n != 0 || err != nil || asked != 1 {
		t.Errorf("asked %d times, and left %d records, %v", asked, n, err)
	}
	if text, err := os.ReadFile(dir + "/r/calls.log"); err != nil || !bytes.Contains(text, []byte(`"outcome":"refused"`)) {
		t.Errorf("calls.log has %s, %v", text, err)
	}
}

// TestDELByPlainHTTP has a network configuration that calls by plain HTTP, as that of a pod from before the move to
// HTTPS. What it gives back is recorded, stays while that is so, and is delivered once the node has moved.
func TestDELByPlainHTTP(t *testing.T) {
	dir := t.TempDir()
	status, answer := http.StatusForbidden, fmt.Sprintf(`"code":1,"result":false,"data":null,"message":"no","reason":%q`, ipam.ReasonPlainHTTP)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{%s,"request_id":%q}`, answer, q.Header.Get("X-Request-Id"))
	}))
	defer server.Close()
	p := onNode(t, dir, io.Discard, io.Discard, server.URL)
	left := func(want int) {
		t.Helper()
		if n, err := undelivered.In(dir + "/v").Len(); n != want || err != nil {
			t.Errorf("%d records are left, want %d, %v", n, want, err)
		}
	}
	err := p.Funcs().Del(&skel.CmdArgs{ContainerID: "3f4e", IfName: "eth0", StdinData: configured("")})
	if err != nil {
		t.Error(err)
	}
	left(1)
	if d, err := p.Deliver(t.Context()); d.Dropped != 0 || d.Left != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	left(1)
	status, answer = http.StatusOK, `"code":0,"result":true,"data":{"containerID":"3f4e","released":[]},"message":""`
	if d, err := p.Deliver(t.Context()); d.Delivered != 1 || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
	left(0)
}

// configured returns a network configuration, with more fields in its section ipam.
func configured(more string) []byte {
	return fmt.Appendf(nil, `{"cniVersion":"1.1.0","name":"lan","ipam":{"type":"bcsnet-ipam"%s}}`, more)
}

// onNode returns a plugin whose directories are below one: its config.json is in e, and v and r are those of data.
func onNode(t *testing.T, dir string, out, log io.Writer, replicas ...string) *Plugin {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"cluster": "c1", "host": "10.0.0.11", "replicas": replicas, "dataDir": dir + "/v", "runDir": dir + "/r",
	})
	if err := errors.Join(err, os.MkdirAll(dir+"/e", 0o700), os.WriteFile(dir+"/e/config.json", text, 0o600)); err != nil {
		t.Fatal(err)
	}
	p := New(out, log)
	p.ConfigDir = dir + "/e"
	return p
}

// TestForDEL has what libraries would refuse; all that can be used is kept.
func TestForDEL(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"bcsnet-ipam"}`:                              `{"cniVersion":"1.1.0","name":"unknown","type":"bcsnet-ipam"}`,
		`{"cniVersion":"0.3.1","name":"lan","ipam":{"a":1}}`:  `{"cniVersion":"0.3.1","ipam":{"a":1},"name":"lan"}`,
		`{"cniVersion":"9.0.0","name":"../lan","ipam":{"a":1`: `{"cniVersion":"1.1.0","name":"unknown","type":"bcsnet-ipam"}`,
		`{"cniVersion":"9.0.0","name":"../lan","x":[1]}`:      `{"cniVersion":"1.1.0","name":"unknown","x":[1]}`,
		`null`: `{"cniVersion":"1.1.0","name":"unknown","type":"bcsnet-ipam"}`,
		``:     `{"cniVersion":"1.1.0","name":"unknown","type":"bcsnet-ipam"}`,
	} {
		if got := string(forDEL([]byte(text))); got != want || !json.Valid([]byte(got)) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestStdinOfDEL has an input that cannot be read, and one that is too long: the DEL is done as by the type alone.
func TestStdinOfDEL(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, "long")
	if err := errors.Join(os.WriteFile(long, nil, 0o600), os.Truncate(long, maxConfig+1)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{long, dir} {
		in, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = in.Close() })
		out, err := Stdin("DEL", in)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		t.Cleanup(func() { _ = out.Close() })
		if text, err := io.ReadAll(out); err != nil || !bytes.Contains(text, []byte(`"type":"bcsnet-ipam"`)) {
			t.Errorf("%s: %s, %v", path, text, err)
		}
	}
}
