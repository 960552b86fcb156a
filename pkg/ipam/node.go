package ipam

import (
	"net/netip"
	"slices"
)

// SetNode takes the addresses that a node itself has; none for a node that is gone. They are never
// handed out.
func (x *Index) SetNode(name string, addrs []netip.Addr) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.nodes[name]
	if slices.Equal(old, addrs) {
		return
	}
	for _, a := range old {
		if x.nodeIP[a] == name {
			delete(x.nodeIP, a)
		}
	}
	for _, a := range addrs {
		x.nodeIP[a] = name
	}
	if x.nodes[name] = addrs; len(addrs) == 0 {
		delete(x.nodes, name)
	}
	for _, a := range slices.Concat(old, addrs) {
		x.refresh(a)
	}
}
