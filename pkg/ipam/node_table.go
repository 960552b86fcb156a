package ipam

import (
	"maps"
	"net/netip"
	"slices"
)

// Node has what matters of a node. Its labels do not change once it was given to SetNode.
type Node struct {
	// Addrs are the addresses that the node has itself. Internal are those of them that are InternalIPs: by these it
	// draws where a host selector matches it.
	Addrs, Internal []netip.Addr
	Labels          map[string]string
}

// Equal reports whether two nodes have the same addresses and labels.
func (n Node) Equal(o Node) bool {
	return slices.Equal(n.Addrs, o.Addrs) && slices.Equal(n.Internal, o.Internal) && maps.Equal(n.Labels, o.Labels)
}

// nodeTable has the nodes by name, and their names by the addresses that they have themselves; names are sorted.
type nodeTable struct {
	ByName map[string]Node
	nodeIP map[netip.Addr][]string
}

// newNodeTable returns a table without nodes.
func newNodeTable() nodeTable {
	return nodeTable{ByName: map[string]Node{}, nodeIP: map[netip.Addr][]string{}}
}

// SetNode puts a node in the place of the one of its name, and returns that. One without addresses and labels is none.
func (x *nodeTable) SetNode(name string, n Node) (old Node) {
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
	x.ByName[name] = Node{slices.Clone(n.Addrs), slices.Clone(n.Internal), n.Labels}
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

func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}
