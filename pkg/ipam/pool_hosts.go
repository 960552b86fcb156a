package ipam

import (
	"net/netip"
	"slices"
)

// SetNode takes a node; one without addresses for a node that is gone. Addresses that nodes have themselves are never
// handed out. Two nodes can have an address for a while, as when a machine registers under a new name. It names the
// pools whose host selectors it matches now or did before, where that has changed.
func (x *poolView) SetNode(name string, n Node) (reselected []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.nodes[name].equal(n) {
		return nil
	}
	old := x.setNode(name, n)
	if !slices.Equal(old.Addrs, n.Addrs) {
		for _, a := range slices.Concat(old.Addrs, n.Addrs) {
			x.refresh(a)
		}
	}
	for _, p := range x.roots {
		p.hosts = uncounted
	}
	return x.reselect(old, n)
}

// NodeOf names the node that has an address itself, the first by name when there are several.
func (x *poolView) NodeOf(a netip.Addr) (string, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.nodeOf(a)
}

// HostCount returns how many hosts may draw from a pool: those that it lists, and the nodes in its host subnets and of
// its host selector. It looks at the nodes only when one of them, or the pool, has changed.
func (x *poolView) HostCount(name string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	p, ok := x.pools[name]
	if !ok {
		return 0
	}
	if p = p.home(); p.hosts == uncounted {
		p.hosts = len(p.Hosts) + x.nodesCovered(p)
	}
	return p.hosts
}

// Covering returns the pools that some address may draw from without being listed, by name.
func (x *poolView) Covering(addrs []netip.Addr) (names []string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, p := range x.roots {
		if slices.ContainsFunc(addrs, p.Covers) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// nodesCovered counts the nodes that may draw from a pool without being listed.
func (x *state) nodesCovered(p *poolState) (n int) {
	if len(p.HostSubnets)+len(p.Selected) == 0 {
		return 0
	}
	for _, node := range x.nodes {
		listed := slices.ContainsFunc(node.Addrs, func(a netip.Addr) bool { _, ok := p.Hosts[a]; return ok })
		if !listed && slices.ContainsFunc(node.Addrs, p.Covers) {
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
// of the default chain.
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
	for host = range p.byAddress() {
		return host, true
	}
	for n := range p.HostSubnets {
		return n.Addr(), true
	}
	return host, false
}
