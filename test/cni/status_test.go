package cni_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// status sends a STATUS through libcni.
func (n *node) status(ipam string) (err error) {
	n.Helper()
	list := conflist(n.T, "1.1.0", "lan", bridge, ipam)
	n.host.Do(n.T, func() error {
		err = n.cni().GetStatusNetworkList(context.Background(), list)
		return nil
	})
	return err
}

// TestStatus has a node from its boot on: no replica has answered, one has, and then none does any more.
func TestStatus(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.pool("", nil, 20)
	both := `"statusFails":["allocator","pools"]`
	want := func(what string, err error, words ...string) {
		t.Helper()
		if len(words) == 0 && err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if len(words) > 0 {
			n.wantError(err, words...)
		}
	}
	stdin := strings.Replace(direct, `"ipam":{`, `"ipam":{`+both+`,`, 1)
	pod := n.container("web")
	call := func(stdin string) error { _, err := pod.call("STATUS", stdin); return err }

	n.relay.breakLines()
	want("no answer since boot", call(direct), `"code": 50`, "no replica of the allocator answered")
	n.relay.instead(nil)
	want("a replica answers", call(direct))
	want("through the bridge plugin", n.status(""))
	asked := n.relay.asked.Load()
	want("later", call(direct))
	if got := n.relay.asked.Load(); got != asked {
		t.Errorf("a STATUS that needs no replica asked %d times", got-asked)
	}
	n.relay.breakLines()
	want("an outage later", call(direct))
	want("an outage later, through the bridge plugin", n.status(""))
	want("the same with statusFails", n.status(both), "no replica of the allocator answered")
	want("an outage later, with statusFails", call(stdin), `"code": 50`, "no replica of the allocator answered")
	n.relay.instead(nil)
	want("it is over", call(stdin))

	pod.addDirect()
	late := n.container("late")
	_, err := late.call("ADD", direct)
	n.wantError(err, `"code": 11`, "(PoolExhausted)", "hint:")
	want("pools are full", call(direct))
	want("pools are full, with statusFails", call(stdin), `"code": 50`, "pools are full")
	if _, err := pod.call("DEL", direct); err != nil {
		t.Error(err)
	}
	late.addDirect()
	want("a pod got an address", call(stdin))

	// What another boot left is none.
	n.write("run/state.json", strings.Replace(n.read("run/state.json"), `"boot":"`, `"boot":"x`, 1))
	n.relay.breakLines()
	want("after another boot", call(direct), `"code": 50`)
	n.write("run/state.json", `{"boot":`)
	want("a damaged state", call(direct), `"code": 50`)
	n.relay.instead(nil)
	want("written anew", call(direct))

	if got := n.lines("STATUS"); !slices.Contains(got, "ok") || !slices.Contains(got, "unanswered") {
		t.Errorf("calls.log has %v", got)
	}
}

// TestStatusOfConfigurations has nodes that are not configured so that an ADD could be done.
func TestStatusOfConfigurations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		words []string
	}{
		"no configuration":     {map[string]string{"config.json": "{}"}, []string{`"code": 50`, "no host"}},
		"no replica":           {map[string]string{"config.json": `{"host":"10.0.0.1"}`}, []string{`"code": 50`, "no replica"}},
		"damaged":              {map[string]string{"config.json": `{"host":`}, []string{"config.json", "not a JSON object"}},
		"empty":                {map[string]string{"config.json": ``}, []string{"config.json", "not a JSON object"}},
		"a field that is none": {map[string]string{"config.json": `{"host":"node-1"}`}, []string{`"code": 7`, "host", "node-1"}},
		"no CA":                {map[string]string{"config.json": `{"host":"10.0.0.1","replicas":["https://127.0.0.1:1"]}`}, []string{`"code": 50`, "ca.crt"}},
		"a CA that is none": {map[string]string{
			"config.json": `{"host":"10.0.0.1","replicas":["https://127.0.0.1:1"]}`, "ca.crt": "x",
		}, []string{`"code": 50`, "ca.crt has no certificate"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.remove("etc/ca.crt")
			for file, text := range c.files {
				n.write("etc/"+file, text)
			}
			_, err := n.container("web").call("STATUS", direct)
			n.wantError(err, c.words...)
		})
	}
}

// TestCheck has a CHECK after the allocator, or the runtime, forgot.
func TestCheck(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.pool("", nil, 20, 21)
	pod := n.container("web")
	pod.addDirect()
	addr := n.holding(pod.id)
	check := func(prev string) error {
		_, err := pod.call("CHECK", strings.Replace(direct, `"name"`, prev+`"name"`, 1))
		return err
	}
	result := func(addr string) string {
		return fmt.Sprintf(`"prevResult":{"cniVersion":"1.1.0","ips":[{"address":"%s/24"}]},`, addr)
	}
	if err := check(result(addr)); err != nil {
		t.Error(err)
	}
	n.wantError(check(""), `"code": 7`, "a CHECK without prevResult")
	n.wantError(check(`"prevResult":{"cniVersion":"1.1.0"},`), `"code": 7`, "has no address of eth0")
	n.wantError(check(`"prevResult":{"cniVersion":"1.1.0","ips":[{"address":"x"}]},`), `"code": 6`, "prevResult")
	n.wantError(check(`"prevResult":"x",`), `"code": 6`, "prevResult")
	n.wantError(check(result("192.0.2.1")), `"code": 100`, "prevResult has [192.0.2.1], and the allocator knows ["+addr+"]")
	if _, err := pod.call("DEL", direct); err != nil {
		t.Error(err)
	}
	n.wantError(check(result(addr)), `"code": 100`, "the allocator knows no address")
}
