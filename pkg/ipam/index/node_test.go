package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// An address that two nodes have stays out of reach until both have given it up, in either order.
func TestNodesThatShareAnAddress(t *testing.T) {
	for name, order := range map[string][]string{
		"older first": {"node-a", "node-b"}, "newer first": {"node-b", "node-a"},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.9"}))
			x.Pools.SetNode("node-a", node("10.0.0.9"))
			x.Pools.SetNode("node-b", node("10.0.0.9", "10.0.0.9"))
			x.Pools.SetNode("node-a", node("10.0.0.9", "192.168.0.7"))
			if got, ok := x.Pools.NodeOf(ip("10.0.0.9")); !ok || got != "node-a" {
				t.Errorf("NodeOf = %q, %v", got, ok)
			}
			x.Pools.SetNode(order[0], ipam.Node{})
			if got, ok := x.Pools.NodeOf(ip("10.0.0.9")); !ok || got != order[1] {
				t.Errorf("NodeOf = %q, %v, want %s", got, ok, order[1])
			}
			if picks, _ := x.Pick(want(), now); picks != nil {
				t.Errorf("the own address of %s was given away: %v", order[1], picked(picks))
			}
			x.Pools.SetNode(order[1], ipam.Node{})
			picks, refusal := x.Pick(want(), now)
			if diff := cmp.Diff([]string{"a 10.0.0.9"}, picked(picks)); diff != "" {
				t.Errorf("when both are gone (-want +got):\n%s\n%s", diff, refused(refusal))
			}
		})
	}
}

// The index keeps its own copy of what it is given.
func TestSetNodeCopies(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.9"}))
	addrs := ips("10.0.0.8")
	x.Pools.SetNode("node", ipam.Node{Addrs: addrs})
	addrs[0] = ip("10.0.0.9")
	x.Pools.SetNode("node", ipam.Node{Addrs: addrs})
	if _, ok := x.Pools.NodeOf(ip("10.0.0.8")); ok {
		t.Error("the node still has its old address")
	}
	if _, ok := x.Pools.NodeOf(ip("10.0.0.9")); !ok {
		t.Error("the node does not have its new address")
	}
}
