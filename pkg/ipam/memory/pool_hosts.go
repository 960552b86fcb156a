package memory

import (
	"net/netip"
	"slices"
)

// NodesCovered counts the nodes that may draw from a pool without being listed.
func (x *State) NodesCovered(p *PoolState) (n int) {
	if len(p.HostSubnets)+len(p.Selected) == 0 {
		return 0
	}
	for _, node := range x.Nodes.ByName {
		listed := slices.ContainsFunc(node.Addrs, func(a netip.Addr) bool { _, ok := p.Hosts[a]; return ok })
		if !listed && slices.ContainsFunc(node.Addrs, p.Covers) {
			n++
		}
	}
	return n
}
