package index

import (
	"maps"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// Chain returns the places of all pools for a namespace: first those that its requests try, in their order, then those
// that are passed over, without the blocks of other namespaces. Without a valid host it is that of any host: a pool is
// tried if it is tried on one of its hosts.
func (x *Pools) Chain(namespace string, host netip.Addr) (all []ipam.Place) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	w := ipam.PickRequest{Namespace: namespace, Host: host, Ahead: !host.IsValid()}
	tried := map[*memory.PoolState]bool{}
	for p := range x.core.state.Pools.Fitting(w) {
		tried[p] = true
		all = append(all, ipam.Place{Pool: p.Name, Standing: x.core.state.Pools.Standing(p, w), Tried: true,
			Stop: p.Stop()})
	}
	if !host.IsValid() {
		for _, p := range x.core.state.Pools.Beside(namespace) {
			if !tried[p] {
				tried[p] = true
				all = append(all, ipam.Place{Pool: p.Name, Standing: ipam.BesideItsOwn, Tried: true, Stop: p.Stop()})
			}
		}
	}
	for _, p := range slices.SortedFunc(maps.Values(x.core.state.Pools.ByName), memory.Preference) {
		if !tried[p] && !p.Block {
			all = append(all, ipam.Place{Pool: p.Name, Standing: x.core.state.Pools.Standing(p, w), Tried: false,
				Stop: p.Stop()})
		}
	}
	return all
}

// ServesNamespace reports whether a pool is for requests of a namespace that name neither a pool nor a network, on
// hosts for which the namespace could be given no block.
func (x *Pools) ServesNamespace(pool, namespace string) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	p := x.core.state.Pools.ByName[pool]
	return p != nil && x.core.state.Pools.ServesNamespace(p, ipam.PickRequest{Namespace: namespace})
}

// SetNamespace takes a namespace that exists, with its labels, and names the pools whose selectors match it now and did
// not before, or the other way round. The labels must not change afterwards. Leases stay as they are.
func (x *Pools) SetNamespace(name string, labels map[string]string) (changed []string) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	old, known := x.core.state.Pools.Namespaces.Labels[name]
	if known && maps.Equal(old, labels) {
		return nil
	}
	x.core.state.Pools.Namespaces.Labels[name] = labels
	if changed = x.core.state.Pools.Rematch(name); len(changed) > 0 {
		x.core.state.Pools.Plans++
	}
	return changed
}

// RemoveNamespace forgets a namespace, and names the pools whose selectors matched it.
func (x *Pools) RemoveNamespace(name string) (changed []string) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	delete(x.core.state.Pools.Namespaces.Labels, name)
	if changed = x.core.state.Pools.Rematch(name); len(changed) > 0 {
		x.core.state.Pools.Plans++
	}
	return changed
}

// NamespacesOf counts the namespaces that a pool is bound to by name, and those that its selector matches at present
// beside them.
func (x *Pools) NamespacesOf(pool string) (named, matched int) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	p := x.core.state.Pools.ByName[pool]
	if p == nil {
		return 0, 0
	}
	for range p.NamespacesNow() {
		matched++
	}
	return len(p.Namespaces), matched - len(p.Namespaces)
}

// Own names what a namespace has of its own, or could be given a block of. With anything of its own it is not in the
// default chain. Without a valid host it is that on any host.
func (x *Pools) Own(namespace string, host netip.Addr) []string {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.Pools.OwnNames(ipam.PickRequest{Namespace: namespace, Host: host, Ahead: !host.IsValid()})
}

// OwnsEverywhere reports whether a namespace has something of its own that keeps it out of the default chain on every
// host: a pool that is bound to it, or a block that it was given by hand.
func (x *Pools) OwnsEverywhere(namespace string) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.Pools.HasOwn(ipam.PickRequest{Namespace: namespace})
}

// Serves reports whether any pool is for requests of a namespace from a host that name neither a pool nor a network.
func (x *Pools) Serves(namespace string, host netip.Addr) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.Pools.Served(ipam.PickRequest{Namespace: namespace, Host: host})
}

// Unserved returns the hosts of the default chain on which a namespace gets no address, as it has something of its own
// that is for other hosts.
func (x *Pools) Unserved(namespace string) *netipx.IPSet {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	var hosts []netipx.IPRange
	var own []*netipx.IPSet
	if x.core.state.Pools.HasOwn(ipam.PickRequest{Namespace: namespace}) {
		for p := range x.core.state.Pools.Own(ipam.PickRequest{Namespace: namespace, Ahead: true}) {
			own = append(own, p.Drawing())
		}
		for _, p := range x.core.state.Pools.Open {
			hosts = append(hosts, p.Drawing().Ranges()...)
		}
	}
	return ipaddr.Subtract(ipaddr.SetOf(hosts...), own...)
}

// Shadow is a pool of the default chain that serves nobody on hosts where other pools give every namespace blocks by
// themselves.
type Shadow struct {
	Pool string
	// By are the pools that give the blocks. Whole means that the pool has no other hosts.
	By    []string
	Whole bool
}

// Shadows returns the pools of the default chain that serve nobody on some of their hosts, in the order of preference.
func (x *Pools) Shadows() (all []Shadow) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	for _, p := range x.core.state.Pools.Open {
		if p.Terminating || slices.Contains(x.core.state.Pools.Growing, p) {
			continue
		}
		s, left := Shadow{Pool: p.Name}, p.Drawing()
		for _, g := range x.core.state.Pools.Growing {
			if rest := ipaddr.Subtract(left, g.Drawing()); !rest.Equal(left) {
				s.By, left = append(s.By, g.Name), rest
			}
		}
		if s.Whole = len(left.Ranges()) == 0; len(s.By) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// PoolsFor names the pools that pods of a namespace draw from where they name none, on whichever host, in the order in
// which these are tried.
func (x *Pools) PoolsFor(namespace string) (names []string) {
	for _, p := range x.Chain(namespace, netip.Addr{}) {
		// else it gives blocks only by hand
		if of, _ := x.Get(p.Pool); p.Tried && (of.BlockSize == 0 || of.AutoAssign) {
			names = append(names, p.Pool)
		}
	}
	return names
}
