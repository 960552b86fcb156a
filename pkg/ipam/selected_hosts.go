package ipam

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
)

// SelectsNode reports whether the host selector of the pool matches a node.
func (p Pool) SelectsNode(n Node) bool {
	return p.HostSelector != nil && p.HostSelector.Matches(n.Labels)
}

// WithNodes returns the pool with the hosts whose nodes its host selector matches. The index finds them by itself.
func (p Pool) WithNodes(nodes iter.Seq[Node]) Pool {
	p.Selected = nil
	if p.HostSelector == nil {
		return p
	}
	for n := range nodes {
		if p.SelectsNode(n) {
			p.Selected = append(p.Selected, n.Internal...)
		}
	}
	slices.SortFunc(p.Selected, netip.Addr.Compare)
	p.Selected = slices.Compact(p.Selected)
	return p
}

// ByAddress returns the hosts that may draw from the pool by their address alone: those that it lists, and those that
// its selector chooses, each once.
func (p Pool) ByAddress() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for h := range p.Hosts {
			if !yield(h) {
				return
			}
		}
		for _, h := range p.Selected {
			if _, listed := p.Hosts[h]; !listed && !yield(h) {
				return
			}
		}
	}
}

// Reselect brings the hosts that selectors choose up to date after a node has changed, and names the pools whose
// selectors match it otherwise than before. Its cost is that of the pools that have a selector, not that of the nodes.
func (x *State) Reselect(was, is Node) (changed []string) {
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
			if !slices.Contains(after, h) && !x.selectedBy(p, h) {
				x.deselect(p, h)
			}
		}
		for _, h := range after {
			x.selectHost(p, h)
		}
		if !slices.Equal(old, p.Selected) {
			x.Pools.Plans++
			p.readThrough()
		}
	}
	return changed
}

// selectedBy reports whether the selector of a pool matches any node of an address. Two nodes can have it for a while.
func (x *State) selectedBy(p *PoolState, h netip.Addr) bool {
	return slices.ContainsFunc(x.Nodes.nodeIP[h], func(name string) bool {
		n := x.Nodes.ByName[name]
		return p.SelectsNode(n) && slices.Contains(n.Internal, h)
	})
}

// selectHost and deselect replace the list of hosts, as copies of the pool share the old one.
func (x *State) selectHost(p *PoolState, h netip.Addr) {
	at, found := slices.BinarySearchFunc(p.Selected, h, netip.Addr.Compare)
	if found {
		return
	}
	p.Selected = slices.Insert(slices.Clip(p.Selected), at, h)
	if _, listed := p.Hosts[h]; !listed {
		x.Pools.hostsOf(p).enterHost(h, p)
	}
}

func (x *State) deselect(p *PoolState, h netip.Addr) {
	at, found := slices.BinarySearchFunc(p.Selected, h, netip.Addr.Compare)
	if !found {
		return
	}
	p.Selected = slices.Concat(p.Selected[:at], p.Selected[at+1:])
	if _, listed := p.Hosts[h]; !listed {
		x.Pools.hostsOf(p).leaveHost(h, p)
	}
}
