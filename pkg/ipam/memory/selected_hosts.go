package memory

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Reselect brings the hosts that selectors choose up to date after a node has changed, and names the pools whose
// selectors match it otherwise than before. Its cost is that of the pools that have a selector, not that of the nodes.
func (x *State) Reselect(was, is ipam.Node) (changed []string) {
	for _, p := range slices.SortedFunc(maps.Keys(x.Pools.selecting), Preference) {
		var before, after []netip.Addr
		if p.SelectsNode(was) {
			before = was.Internal
		}
		if p.SelectsNode(is) {
			after = is.Internal
		}
		if p.SelectsNode(was) == p.SelectsNode(is) && slices.Equal(before, after) {
			continue
		}
		changed = append(changed, p.Name)
		old := p.Selected
		for _, h := range before {
			if !slices.Contains(after, h) && !x.Nodes.Selects(&p.Pool, h) {
				x.Pools.deselect(p, h)
			}
		}
		for _, h := range after {
			x.Pools.selectHost(p, h)
		}
		if !slices.Equal(old, p.Selected) {
			x.Pools.Plans++
			p.readThrough()
		}
	}
	return changed
}

// selectHost and deselect replace the list of hosts, as copies of the pool share the old one.
func (x *Catalogue) selectHost(p *PoolState, h netip.Addr) {
	at, found := slices.BinarySearchFunc(p.Selected, h, netip.Addr.Compare)
	if found {
		return
	}
	p.Selected = slices.Insert(slices.Clip(p.Selected), at, h)
	if _, listed := p.Hosts[h]; !listed {
		x.hostsOf(p).enterHost(h, p)
	}
}

func (x *Catalogue) deselect(p *PoolState, h netip.Addr) {
	at, found := slices.BinarySearchFunc(p.Selected, h, netip.Addr.Compare)
	if !found {
		return
	}
	p.Selected = slices.Concat(p.Selected[:at], p.Selected[at+1:])
	if _, listed := p.Hosts[h]; !listed {
		x.hostsOf(p).leaveHost(h, p)
	}
}
