package ipam

import (
	"net/netip"
	"slices"
)

// nodeTable has the addresses that nodes have themselves, by node and by address; names of nodes are sorted.
type nodeTable struct {
	nodes  map[string][]netip.Addr
	nodeIP map[netip.Addr][]string
}

func newNodeTable() nodeTable {
	return nodeTable{nodes: map[string][]netip.Addr{}, nodeIP: map[netip.Addr][]string{}}
}

// SetNode takes the addresses that a node itself has; none for a node that is gone. They are never
// handed out. Two nodes can have an address for a while, as when a machine registers under a new name.
func (x *poolView) SetNode(name string, addrs []netip.Addr) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.nodes[name]
	if slices.Equal(old, addrs) {
		return
	}
	for _, a := range old {
		if x.nodeIP[a] = without(x.nodeIP[a], name); len(x.nodeIP[a]) == 0 {
			delete(x.nodeIP, a)
		}
	}
	for _, a := range addrs {
		if at, found := slices.BinarySearch(x.nodeIP[a], name); !found {
			x.nodeIP[a] = slices.Insert(x.nodeIP[a], at, name)
		}
	}
	if x.nodes[name] = slices.Clone(addrs); len(addrs) == 0 {
		delete(x.nodes, name)
	}
	for _, a := range slices.Concat(old, addrs) {
		x.refresh(a)
	}
	for _, p := range x.pools {
		p.hosts = uncounted
	}
}

// NodeOf names the node that has an address itself, the first by name when there are several.
func (x *poolView) NodeOf(a netip.Addr) (string, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.nodeOf(a)
}

func (x *nodeTable) nodeOf(a netip.Addr) (string, bool) {
	if names := x.nodeIP[a]; len(names) > 0 {
		return names[0], true
	}
	return "", false
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}
