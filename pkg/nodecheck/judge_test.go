package nodecheck

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fourNodes returns n1 to n4, whose pods have two addresses each and found nothing wrong.
func fourNodes() []Node {
	var nodes []Node
	for _, number := range []string{"1", "2", "3", "4"} {
		nodes = append(nodes, Node{
			Name: "n" + number, Pod: "pod-" + number, ReadyIn: time.Second,
			Addrs: []Address{
				{Addr: netip.MustParseAddr("10.0.0." + number), Pool: "blue", Gateway: netip.MustParseAddr("10.0.0.254")},
				{Addr: netip.MustParseAddr("2001:db8::" + number), Pool: "blue6"},
			},
			Report:  &Report{Links: []Link{{Gateway: true, GatewayMAC: "02:00:00:00:00:fe"}, {}}},
			Release: Release{Asked: true},
		})
	}
	for i := range nodes {
		for j := range nodes {
			if i != j {
				nodes[i].Plan.Peers = append(nodes[i].Plan.Peers,
					Peer{Name: nodes[j].Pod, Addrs: []netip.Addr{nodes[j].Addrs[0].Addr, nodes[j].Addrs[1].Addr}})
			}
		}
	}
	return nodes
}

// lose has one node not reach addresses of another one; all where none is named.
func lose(nodes []Node, from, to int, addrs ...int) {
	if addrs == nil {
		addrs = []int{0, 1}
	}
	peer := to
	if to > from {
		peer--
	}
	for _, a := range addrs {
		nodes[from].Report.Lost = append(nodes[from].Report.Lost, Lost{Peer: peer, Addr: a, Why: "no answer"})
	}
}

func TestJudge(t *testing.T) {
	for name, test := range map[string]struct {
		damage func([]Node)
		want   []string
	}{
		"all well": {damage: func([]Node) {}},
		"no pod": {
			damage: func(n []Node) { n[1] = Node{Name: "n2", Failure: &Finding{"node", "n2", "it is not Ready", "mend it"}} },
			want:   []string{"n2 node: it is not Ready"},
		},
		"a silent gateway": {
			damage: func(n []Node) { n[0].Report.Links[0] = Link{GatewayWhy: "no answer on eth0"} },
			want:   []string{"n1 gateway: the gateway 10.0.0.254 of pool blue does not answer on the link of 10.0.0.1: no answer on eth0"},
		},
		"a duplicate": {
			damage: func(n []Node) {
				n[2].Report.Links[1].Others = []string{"02:00:00:00:00:01", "02:00:00:00:00:02"}
			},
			want: []string{"n3 duplicate: somebody else answers for 2001:db8::3 of pool blue6: 02:00:00:00:00:01, 02:00:00:00:00:02"},
		},
		"what a duplicate explains": {
			damage: func(n []Node) {
				n[2].Report.Links[0].Others = []string{"02:00:00:00:00:01"}
				lose(n, 0, 2, 0)
				lose(n, 2, 1, 0)
				lose(n, 3, 2)
			},
			want: []string{
				"n3 duplicate: somebody else answers for 10.0.0.3 of pool blue: 02:00:00:00:00:01",
				"n4 peers: its pod does not reach the pod of n3 (2001:db8::3: no answer)",
			},
		},
		"one way": {
			damage: func(n []Node) { lose(n, 0, 2) },
			want:   []string{"n1 peers: its pod does not reach the pod of n3 (10.0.0.3: no answer)"},
		},
		"one family": {
			damage: func(n []Node) { lose(n, 0, 2, 1) },
			want:   []string{"n1 peers: its pod does not reach the pod of n3 (2001:db8::3: no answer)"},
		},
		"both ways are one finding": {
			damage: func(n []Node) { lose(n, 2, 0); lose(n, 0, 2) },
			want:   []string{"n1 peers: its pod does not reach the pod of n3 (10.0.0.3: no answer), and is not reached from there"},
		},
		"two that split": {
			damage: func(n []Node) { lose(n, 0, 2); lose(n, 2, 0); lose(n, 0, 3) },
			want: []string{
				"n1 peers: its pod does not reach the pod of n4 (10.0.0.4: no answer)",
				"n1 peers: its pod does not reach the pod of n3 (10.0.0.3: no answer), and is not reached from there",
			},
		},
		"one is cut off, and others have no finding about it": {
			damage: func(n []Node) {
				for _, other := range []int{0, 2, 3} {
					lose(n, 1, other)
					lose(n, other, 1)
				}
			},
			want: []string{"n2 peers: its pod is cut off: it reaches none of 3 others, and none of them reaches it (10.0.0.1: no answer)"},
		},
		"one is cut off by one family alone, which is not cut off": {
			damage: func(n []Node) {
				for _, other := range []int{0, 2, 3} {
					lose(n, 1, other, 1)
					lose(n, other, 1, 1)
				}
			},
			want: []string{
				"n1 peers: its pod does not reach the pod of n2 (2001:db8::2: no answer), and is not reached from there",
				"n2 peers: its pod does not reach the pod of n3 (2001:db8::3: no answer), n4 (2001:db8::4: no answer), and is not reached from there",
			},
		},
		"it is reached and reaches nobody": {
			damage: func(n []Node) { lose(n, 1, 0); lose(n, 1, 2); lose(n, 1, 3) },
			want: []string{
				"n2 peers: its pod does not reach the pod of n1 (10.0.0.1: no answer), n3 (10.0.0.3: no answer), n4 (10.0.0.4: no answer)",
			},
		},
		"it is still there": {
			damage: func(n []Node) { n[0].Release = Release{Asked: true, Left: true, Within: 45 * time.Second} },
			want:   []string{"n1 release: the pod pod-1 was deleted and is still there after 45s"},
		},
		"an address is held": {
			damage: func(n []Node) {
				n[3].Release = Release{Asked: true, Held: []netip.Addr{n[3].Addrs[0].Addr}, Within: 45 * time.Second}
			},
			want: []string{"n4 release: 10.0.0.4 is still in use for the pod pod-4 45s after its end"},
		},
		"both addresses are held": {
			damage: func(n []Node) {
				held := []netip.Addr{n[3].Addrs[0].Addr, n[3].Addrs[1].Addr}
				n[3].Release = Release{Asked: true, Held: held, Within: 45 * time.Second}
			},
			want: []string{"n4 release: 10.0.0.4, 2001:db8::4 are still in use for the pod pod-4 45s after its end"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := fourNodes()
			test.damage(nodes)
			var got []string
			for _, f := range Judge(nodes) {
				got = append(got, f.Node+" "+f.Check+": "+f.Cause)
				if f.Fix == "" {
					t.Errorf("%s: no next step", f.Cause)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestTwoNodes: two that do not reach each other are not both cut off, as nobody knows which one it is.
func TestTwoNodes(t *testing.T) {
	nodes := fourNodes()[:2]
	for i := range nodes {
		nodes[i].Plan.Peers = nodes[i].Plan.Peers[:1]
		lose(nodes, i, 1-i)
	}
	found := Judge(nodes)
	if len(found) != 1 || !strings.Contains(found[0].Cause, "is not reached from there") {
		t.Errorf("%+v, want one finding for both ways", found)
	}
}

func TestReached(t *testing.T) {
	nodes := fourNodes()
	lose(nodes, 0, 1)
	lose(nodes, 0, 3, 1)
	if reached, asked := nodes[0].Reached(); reached != 1 || asked != 3 {
		t.Errorf("%d of %d, want 1 of 3", reached, asked)
	}
}
