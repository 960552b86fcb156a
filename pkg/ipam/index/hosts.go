package index

import (
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// SetNode takes a node; one without addresses for a node that is gone. Addresses that nodes have themselves are never
// allocated. Two nodes can have an address for a while, as when a machine registers under a new name. It names the
// pools whose host selectors it matches now or did before, where that has changed.
func (x *Pools) SetNode(name string, n ipam.Node) (reselected []string) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	if x.core.state.Nodes.Get(name).Equal(n) {
		return nil
	}
	old := x.core.state.Nodes.Set(name, n)
	if !slices.Equal(old.Addrs, n.Addrs) {
		for _, a := range slices.Concat(old.Addrs, n.Addrs) {
			x.core.state.Refresh(a)
		}
	}
	for _, p := range x.core.state.Pools.Roots {
		p.HostCount = memory.Uncounted
	}
	return x.core.state.Reselect(old, n)
}

// NodeOf names the node that has an address itself, the first by name when there are several.
func (x *Pools) NodeOf(a netip.Addr) (string, bool) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.Nodes.Of(a)
}

// HostCount returns how many hosts may draw from a pool: those that it lists, and the nodes in its host subnets and of
// its host selector. It looks at the nodes only when one of them, or the pool, has changed.
func (x *Pools) HostCount(name string) int {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	p, ok := x.core.state.Pools.ByName[name]
	if !ok {
		return 0
	}
	if p = p.Home(); p.HostCount == memory.Uncounted {
		p.HostCount = len(p.Hosts) + x.core.state.Nodes.Covered(&p.Pool)
	}
	return p.HostCount
}

// Covering returns the pools that some address may draw from without being listed, by name.
func (x *Pools) Covering(addrs []netip.Addr) (names []string) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	for _, p := range x.core.state.Pools.Roots {
		if slices.ContainsFunc(addrs, p.Covers) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// HeldOn returns how many addresses of each named pool the pods of one host have. host has all of the host's own
// addresses. The map lacks pools without maxPerHost and pools of which the host has nothing; it is nil if it lacks all.
func (x *Pools) HeldOn(host []netip.Addr, pools []string) (n map[string]int) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	for _, name := range pools {
		if p := x.core.state.Pools.ByName[name]; p == nil || p.MaxPerHost == 0 {
			continue
		}
		for _, h := range host {
			if held := x.core.state.Hosts.InUse[ledger.HostPool{Host: h, Pool: name}]; held > 0 {
				if n == nil {
					n = map[string]int{}
				}
				n[name] += held
			}
		}
	}
	return n
}

// PoolsOf names the pools that a host may draw from, for any namespace, in the order of preference: the default chain
// comes first.
func (x *Pools) PoolsOf(host netip.Addr) (names []string) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	for _, t := range []*memory.HostTable{&x.core.state.Pools.Unbound, &x.core.state.Pools.BoundHosts} {
		for p := range t.Of(host) {
			names = append(names, p.Name)
		}
	}
	return names
}

// HostOf returns one of the hosts that may draw from a pool.
func (x *Pools) HostOf(name string) (host netip.Addr, ok bool) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	p := x.core.state.Pools.ByName[name]
	if p == nil {
		return host, false
	}
	for host = range p.ByAddress() {
		return host, true
	}
	for n := range p.HostSubnets {
		return n.Addr(), true
	}
	return host, false
}

// Selection returns how many nodes the host selector of a pool matches, and how many of them have an InternalIP,
// without which they cannot draw. It looks at all nodes.
func (x *Pools) Selection(name string) (nodes, internal int) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	p := x.core.state.Pools.ByName[name]
	if p == nil {
		return 0, 0
	}
	for n := range x.core.state.Nodes.All() {
		if p.SelectsNode(n) {
			nodes++
			internal += min(1, len(n.Internal))
		}
	}
	return nodes, internal
}
