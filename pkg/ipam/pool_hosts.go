package ipam

import (
	"net/netip"
	"slices"
)

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

// HostCount returns how many hosts may draw from a pool: those that it lists, and the nodes in its host subnets. It
// looks at the nodes only when one of them, or the pool, has changed.
func (x *poolView) HostCount(name string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	p, ok := x.pools[name]
	if !ok {
		return 0
	}
	if p.hosts == uncounted {
		p.hosts = len(p.Hosts) + x.nodesInside(p)
	}
	return p.hosts
}

// Covering returns the pools that have one of some addresses in their host subnets, by name.
func (x *poolView) Covering(addrs []netip.Addr) (names []string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, p := range x.pools {
		if slices.ContainsFunc(addrs, func(a netip.Addr) bool { _, ok := p.HostSubnets.Of(a); return ok }) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// nodesInside counts the nodes that may draw from a pool by its host subnets alone.
func (x *state) nodesInside(p *poolState) (n int) {
	if len(p.HostSubnets) == 0 {
		return 0
	}
	for _, addrs := range x.nodes {
		listed := slices.ContainsFunc(addrs, func(a netip.Addr) bool { _, ok := p.Hosts[a]; return ok })
		if !listed && slices.ContainsFunc(addrs, p.Draws) {
			n++
		}
	}
	return n
}

// HeldOn returns how many addresses one host, which may have several addresses itself, has of those of some pools that
// bound how many a host may have; nil for none.
func (x *poolView) HeldOn(host []netip.Addr, pools []string) (n map[string]int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, name := range pools {
		if p := x.pools[name]; p == nil || p.MaxPerHost == 0 {
			continue
		}
		for _, h := range host {
			if held := x.inUse[hostPool{h, name}]; held > 0 {
				if n == nil {
					n = map[string]int{}
				}
				n[name] += held
			}
		}
	}
	return n
}

// PoolsOf names the pools that a host may draw from, for whichever namespace, in the order of preference: first those
// that are bound to no namespace.
func (x *poolView) PoolsOf(host netip.Addr) (names []string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, t := range []*hostTable{&x.unbound, &x.boundHosts} {
		for p := range t.of(host) {
			names = append(names, p.Name)
		}
	}
	return names
}

// HostOf returns one of the hosts that may draw from a pool.
func (x *poolView) HostOf(name string) (host netip.Addr, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.pools[name]
	if p == nil {
		return host, false
	}
	for host = range p.Hosts {
		return host, true
	}
	for n := range p.HostSubnets {
		return n.Addr(), true
	}
	return host, false
}
