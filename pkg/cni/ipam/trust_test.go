package ipam

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cni/attach"
	"github.com/bcsnet/bcsnet/pkg/cni/probe"
	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
	"github.com/bcsnet/bcsnet/pkg/cni/undelivered"
)

const podArgs = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;K8S_POD_UID=u1"

// ofContainer returns a call for a pod's interface.
func ofContainer(stdin []byte) *skel.CmdArgs {
	return &skel.CmdArgs{ContainerID: "3f4e", IfName: "eth0", Args: podArgs, StdinData: stdin}
}

// TestWhatAConfigurationMayNotName has network configurations of somebody who may write one and no more. The node asks
// whom it asks anyway, with its own token, and writes where it writes anyway.
func TestWhatAConfigurationMayNotName(t *testing.T) {
	own, theirs := &script{}, 0
	ours := httptest.NewServer(own)
	defer ours.Close()
	attacker := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { theirs++ }))
	defer attacker.Close()
	for _, field := range []string{"configDir", "dataDir", "runDir", "logDir", "serverName", "cluster", "netserviceEndpoint"} {
		t.Run(field, func(t *testing.T) {
			dir, chosen := t.TempDir(), t.TempDir()
			config := fmt.Sprintf(`{"host":"10.0.0.11","replicas":[%q]}`, attacker.URL)
			if err := errors.Join(os.WriteFile(chosen+"/config.json", []byte(config), 0o600),
				os.Symlink("/var/run/secrets/token", chosen+"/token")); err != nil {
				t.Fatal(err)
			}
			value := chosen
			if field == "netserviceEndpoint" {
				value = attacker.URL
			}
			p := onNode(t, dir, io.Discard, io.Discard, ours.URL)
			r := undelivered.Record{Cluster: "c1", ContainerID: "gone", IfName: "eth0", StartedAt: time.Now()}
			if err := undelivered.In(dir + "/v").Put(r); err != nil {
				t.Fatal(err)
			}
			asked := own.adds.Load()
			stdin := configured(fmt.Sprintf(`,%q:%q`, field, value))
			if err := errors.Join(p.Funcs().Add(ofContainer(stdin)), p.Funcs().Del(ofContainer(stdin))); err != nil {
				t.Error(err)
			}
			files, err := os.ReadDir(chosen)
			if theirs > 0 || own.adds.Load() != asked+1 || len(files) != 2 || err != nil {
				t.Errorf("they were asked %d times, and have %v, %v", theirs, files, err)
			}
			if text, err := os.ReadFile(dir + "/r/calls.log"); err != nil || !bytes.Contains(text, []byte(`"command":"ADD","outcome":"ok"`)) ||
				bytes.Contains(text, []byte("dropped")) {
				t.Errorf("calls.log: %s, %v", text, err)
			}
		})
	}
}

// TestConfiguredByAConflistAlone has a node as the released plugin has it: without config.json. Whom a network
// configuration names is not shown the token, and is not told of others' releases.
func TestConfiguredByAConflistAlone(t *testing.T) {
	var shown []string
	s := &script{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		shown = append(shown, q.Header.Get("Authorization"))
		s.ServeHTTP(w, q)
	}))
	defer server.Close()
	dir := t.TempDir()
	p := onNode(t, dir, io.Discard, io.Discard)
	if err := os.WriteFile(dir+"/e/token", []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	store := undelivered.In(dir + "/v")
	for id, replicas := range map[string][]string{"theirs": {"http://10.0.0.1:8090"}, "3f4e": {server.URL}} {
		r := undelivered.Record{Host: netip.MustParseAddr("10.0.0.11"), ContainerID: id, IfName: "net1", StartedAt: time.Now(), Replicas: replicas}
		if err := store.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Funcs().Add(ofContainer(configured(fmt.Sprintf(`,"netserviceEndpoint":%q`, server.URL)))); err != nil {
		t.Error(err)
	}
	if slices.ContainsFunc(shown, func(s string) bool { return s != "" }) || len(shown) < 2 {
		t.Errorf("they were shown %q", shown)
	}
	if n, err := store.Len(); n != 1 || err != nil {
		t.Errorf("%d records are left, %v", n, err)
	}
	err := p.Funcs().Add(ofContainer(configured(`,"netserviceEndpoint":"https://127.0.0.1:1"`)))
	if err == nil || !strings.Contains(err.Error(), "ca.crt") {
		t.Errorf("over https, which wants a CA of the node's own: %v", err)
	}
}

// TestUnknownFields: an ADD says which field nobody follows, and a pod that runs goes on: its other calls are done.
func TestUnknownFields(t *testing.T) {
	s := &script{}
	server := httptest.NewServer(s)
	defer server.Close()
	var log bytes.Buffer
	p := onNode(t, t.TempDir(), io.Discard, &log, server.URL)
	stdin := configured(`,"range":"10.1.0.0/24","exclude":[]`)
	err := p.Funcs().Add(ofContainer(stdin))
	coded, ok := errors.AsType[*types.Error](err)
	if !ok || coded.Code != types.ErrInvalidNetworkConfig || s.adds.Load() > 0 ||
		!strings.Contains(coded.Details, "ipam.range: ") || !strings.Contains(coded.Details, "ipam.exclude: ") {
		t.Errorf("ADD: %+v, asked %d times", coded, s.adds.Load())
	}
	if err := p.Funcs().Del(ofContainer(stdin)); err != nil || s.dels.Load() != 1 || !strings.Contains(log.String(), "ipam.range") {
		t.Errorf("DEL: %v, asked %d times, notes %s", err, s.dels.Load(), &log)
	}
}

// TestStateOfCallsAtOnce has a DEL that begins before an ADD was refused as pools are full, and ends after it: the
// refusal stays.
func TestStateOfCallsAtOnce(t *testing.T) {
	dir := t.TempDir()
	run := runstate.Dir(dir + "/r")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if err := run.Update(func(s *runstate.State) { s.PoolsFull = &runstate.Full{Message: "full"} }); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, `{"code":0,"result":true,"request_id":%q,"data":{"containerID":"3f4e","ips":[]}}`, q.Header.Get("X-Request-Id"))
	}))
	defer server.Close()
	if err := onNode(t, dir, io.Discard, io.Discard, server.URL).Funcs().Del(ofContainer(configured(""))); err != nil {
		t.Fatal(err)
	}
	if s, err := run.Read(); err != nil || s.PoolsFull == nil || s.Replica != server.URL {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestCheckWithoutAnAnswer has no replica that answers: nothing is known against the pod.
func TestCheckWithoutAnAnswer(t *testing.T) {
	var log bytes.Buffer
	dir := t.TempDir()
	p := onNode(t, dir, io.Discard, &log, "http://127.0.0.1:1")
	stdin := strings.TrimSuffix(string(configured("")), "}") + `,"prevResult":{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.21/24"}]}}`
	if err := p.Funcs().Check(ofContainer([]byte(stdin))); err != nil || !strings.Contains(log.String(), "was not asked") {
		t.Errorf("%v, %s", err, &log)
	}
	if text, err := os.ReadFile(dir + "/r/calls.log"); err != nil || !bytes.Contains(text, []byte(`"outcome":"unanswered"`)) {
		t.Errorf("calls.log: %s, %v", text, err)
	}
}

// TestOwnEarlierContainer has an earlier container of the same pod answer for its address, and then one of another pod.
func TestOwnEarlierContainer(t *testing.T) {
	for uid, want := range map[string]bool{"u1": true, "u2": false} {
		dir := t.TempDir()
		var log bytes.Buffer
		p := onNode(t, dir, io.Discard, &log)
		addr := netip.MustParseAddr("10.0.0.21")
		earlier := &attach.Attachment{ContainerID: "earlier", IfName: "eth0", Pod: "shop/web-0", PodUID: uid, Addrs: []netip.Addr{addr}}
		if err := attach.In(dir + "/r").Write(earlier); err != nil {
			t.Fatal(err)
		}
		c, err := p.begin("ADD", ofContainer(configured("")))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.ofOwnEarlier(probe.Answer{Addr: addr}); got != want {
			t.Errorf("pod %s: %v", uid, got)
		}
		if c.ofOwnEarlier(probe.Answer{Addr: addr.Next()}) {
			t.Error("an address that it does not have")
		}
	}
}
