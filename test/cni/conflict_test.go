package cni_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// squatter is a container on the bridge that took addresses without asking anybody.
func (n *node) squatter(addrs ...string) *container {
	n.Helper()
	quoted := make([]string, 0, len(addrs))
	for _, a := range addrs {
		quoted = append(quoted, fmt.Sprintf(`{"address":"%s/24"}`, a))
	}
	list, err := libcni.NetworkConfFromBytes(fmt.Appendf(nil,
		`{"cniVersion":"1.1.0","name":"squatters","plugins":[{%s,"ipam":{"type":"static","addresses":[%s]}}]}`, bridge,
		strings.Join(quoted, ",")))
	if err != nil {
		n.Fatal(err)
	}
	c := n.container("squatter")
	c.added(list)
	return c
}

// The tests of conflicts run alone: what is asked has to be answered within the time of a probe.

// TestConflict has somebody else use addresses of the pool: they are kept back, and the same ADD takes another.
func TestConflict(t *testing.T) {
	n := newNode(t)
	n.pool("", nil, 20, 21, 22)
	n.squatter(n.addr(20), n.addr(21))
	list := conflist(t, "1.1.0", "lan", bridge, `"probe":true`)
	pod := n.container("web")
	if got := pod.added(list); !slices.Equal(got, []string{n.addr(22)}) {
		t.Errorf("addresses %v", got)
	}
	n.wantHeld(pod.id, n.addr(22))
	// Those that were tried are kept back, and nobody gets them; without a probe somebody would.
	for _, last := range []int{20, 21} {
		if l := n.lease(n.addr(last)); l.Status != v1.IPReserved && l.Status != v1.IPAvailable {
			t.Errorf("%s is %s, of container %s", n.addr(last), l.Status, l.ContainerID)
		}
	}
	if got := n.files("run/attach"); !slices.Equal(got, []string{pod.id + ":eth0.json"}) {
		t.Errorf("attachments: %v", got)
	}

	asked := n.container("asked")
	asked.args = [][2]string{{"IP", n.addr(20)}}
	list0 := conflist(t, "1.1.0", "lan", bridge, `"probe":true`)
	if n.lease(n.addr(20)).Status == v1.IPAvailable {
		_, err := asked.add(list0)
		n.wantError(err, n.addr(20), "(AddressConflict)")
		if err := asked.del(list0); err != nil {
			t.Error(err)
		}
	}
	n.wantHeld(asked.id)
}

// TestConflictOfOneFamily has somebody else use the address of one of two families: the interface keeps the other one,
// and gets another beside it. A pod for which there is no other holds neither.
func TestConflictOfOneFamily(t *testing.T) {
	n := newNode(t)
	network := fmt.Sprintf("net-%d", n.ten)
	n.pool("", func(s *v1.BCSNetPoolSpec) { s.Network = network }, 20, 21)
	n.WantReady(n.NewPool(fmt.Sprintf("cni-%d-six", n.ten), func(s *v1.BCSNetPoolSpec) {
		s.Net, s.Mask, s.Gateway, s.Network = fmt.Sprintf("fd77:%x::", n.ten), 64, n.addr6(0xfe), network
	}, n.addr6(0x20), n.addr6(0x21)))
	n.squatter(n.addr(20))
	list := conflist(t, "1.1.0", "lan", bridge, `"probe":true,"ipFamilyPolicy":"RequireDualStack"`)
	var pods []*container
	for _, name := range []string{"web", "db"} {
		pod := n.container(name)
		result, err := pod.add(list)
		if len(pods) == 1 { // one IPv4 address is in quarantine, and the other one is the first pod's
			n.wantError(err, "(PoolExhausted)")
			n.wantHeld(pod.id)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, pod)
		if len(result.IPs) != 2 || result.IPs[0].Address.String() != n.addr(21)+"/24" {
			t.Errorf("the result is %v", result)
		}
		if held := n.held(pod.id); len(held) != 2 {
			t.Errorf("held are %v", held)
		}
		if err := pod.check(list); err != nil {
			t.Errorf("CHECK: %v", err)
		}
	}
	if l := n.lease(n.addr(20)); l.Status == v1.IPActive {
		t.Errorf("%s is %s, of container %s", n.addr(20), l.Status, l.ContainerID)
	}
	if err := pods[0].del(list); err != nil {
		t.Error(err)
	}
	n.wantHeld(pods[0].id)
}

// TestConflictOfAnAddressAskedFor has an address that was asked for by name: the ADD fails with who answered, and the
// address is free after its DEL.
func TestConflictOfAnAddressAskedFor(t *testing.T) {
	n := newNode(t)
	n.pool("", nil, 20, 21)
	mac := n.squatter(n.addr(20)).netns.MAC(t, "eth0").String()
	list := conflist(t, "1.1.0", "lan", bridge, `"probe":true`)
	pod := n.container("web")
	pod.args = [][2]string{{"IP", n.addr(20)}}
	_, err := pod.add(list)
	n.wantError(err, n.addr(20), mac, "(AddressConflict)")
	if err := pod.del(list); err != nil {
		t.Error(err)
	}
	n.wantFree(n.addr(20))
	if got := n.lines("ADD"); !slices.Equal(got, []string{"conflict"}) {
		t.Errorf("calls.log has %v", got)
	}
}

// TestRouterThatAnswersEveryARP has a MAC answer for each address: the ADD ends after three and says what it looks
// like. Nothing stays held.
func TestRouterThatAnswersEveryARP(t *testing.T) {
	n := newNode(t)
	n.pool("", nil, 20, 21, 22, 23, 24, 25)
	router := n.squatter(n.addr(99))
	router.netns.AnswerAll(t)
	list := conflist(t, "1.1.0", "lan", bridge, `"probe":true`)
	pod := n.container("web")
	_, err := pod.add(list)
	n.wantError(err, "addresses are in use by somebody else", router.netns.MAC(t, "eth0").String(), "proxy ARP")
	n.wantHeld(pod.id)
	if err := pod.del(list); err != nil {
		t.Error(err)
	}
	off := conflist(t, "1.1.0", "lan", bridge, "")
	next := n.container("next")
	if got := next.added(off); len(got) != 1 {
		t.Errorf("without a probe: %v", got)
	}
}

// TestFailover has replicas that are gone, silent about pods, or somebody else, before one that works.
func TestFailover(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.pool("", nil, 20)
	bad := n.newRelay()
	n.configure("cluster", "c1", "host", n.Host, "replicas", []string{bad.url, "http://127.0.0.1:1", n.relay.url})
	for name, answer := range map[string]http.HandlerFunc{
		"not ready":        unreachable,
		"lines that break": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"another server":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>It works!</html>") },
		"another container": func(w http.ResponseWriter, q *http.Request) {
			fmt.Fprintf(w, `{"code":0,"message":"","result":true,"request_id":%q,"data":{"host":"10.0.0.1","containerID":"other",
				"ifName":"eth0","ips":[{"ipAddr":"192.0.2.1","mask":24}]}}`, q.Header.Get("X-Request-Id"))
		},
		"a token it does not take": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
	} {
		t.Run(name, func(t *testing.T) {
			n := n.on(t)
			bad.instead(answer)
			before := bad.asked.Load()
			n.write("run/state.json", fmt.Sprintf(`{"boot":%q,"replica":%q,"answeredAt":"2026-01-02T15:04:05Z"}`, bootID(t), bad.url))
			pod := n.container("web")
			pod.addDirect()
			n.wantHeld(pod.id, n.addr(20))
			if bad.asked.Load() == before {
				t.Error("the other one was not asked at all")
			}
			if !strings.Contains(n.read("run/state.json"), n.relay.url) {
				t.Errorf("state.json: %s", n.read("run/state.json"))
			}
			if _, err := pod.call("DEL", direct); err != nil {
				t.Error(err)
			}
			n.wantFree(n.addr(20))
		})
	}
}

func bootID(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
