package memory

import (
	"iter"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// nodeTable has the nodes by name, and their names by the addresses that they have themselves; names are sorted.
type nodeTable struct {
	ByName map[string]ipam.Node
	nodeIP map[netip.Addr][]string
}

// newNodeTable returns a table without nodes.
func newNodeTable() nodeTable {
	return nodeTable{ByName: map[string]ipam.Node{}, nodeIP: map[netip.Addr][]string{}}
}

// SetNode puts a node in the place of the one of its name, and returns that. One without addresses and labels is none.
func (x *nodeTable) SetNode(name string, n ipam.Node) (old ipam.Node) {
	old = x.ByName[name]
	for _, a := range old.Addrs {
		if x.nodeIP[a] = without(x.nodeIP[a], name); len(x.nodeIP[a]) == 0 {
			delete(x.nodeIP, a)
		}
	}
	for _, a := range n.Addrs {
		if at, found := slices.BinarySearch(x.nodeIP[a], name); !found {
			x.nodeIP[a] = slices.Insert(x.nodeIP[a], at, name)
		}
	}
	x.ByName[name] = ipam.Node{Addrs: slices.Clone(n.Addrs), Internal: slices.Clone(n.Internal), Labels: n.Labels}
	if len(n.Addrs)+len(n.Labels) == 0 {
		delete(x.ByName, name)
	}
	return old
}

// NodeOf names the node that has an address itself, the first by name.
func (x *nodeTable) NodeOf(a netip.Addr) (string, bool) {
	if names := x.nodeIP[a]; len(names) > 0 {
		return names[0], true
	}
	return "", false
}

// Machine yields the addresses of the machine that has a host's address: those that its Node alone claims, if no other
// Node claims the host's; else the host's address alone.
func (x *nodeTable) Machine(host netip.Addr) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		names := x.nodeIP[host]
		if len(names) != 1 {
			yield(host)
			return
		}
		for _, a := range x.ByName[names[0]].Addrs {
			if len(x.nodeIP[a]) == 1 && !yield(a) {
				return
			}
		}
	}
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}
