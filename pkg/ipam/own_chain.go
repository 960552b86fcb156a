package ipam

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// own returns what the namespace of a request has of its own: the pools that are bound to it, then those in which it
// has blocks, or of which it could be given one; of equal priority, those first in which it has some.
func (x *catalogue) own(w PickRequest) iter.Seq[*poolState] {
	bound := x.bound[w.Namespace]
	if x.splits == 0 { // as nearly always
		return slices.Values(bound)
	}
	split := slices.DeleteFunc(slices.Clone(x.owning[w.Namespace]), func(p *poolState) bool { return !p.ownsBlocks(w) })
	for _, p := range x.growing {
		if len(bound) == 0 && p.lists(w) && !slices.Contains(split, p) {
			split = append(split, p)
		}
	}
	split = slices.DeleteFunc(split, func(p *poolState) bool { return slices.Contains(bound, p) })
	slices.SortFunc(split, func(a, b *poolState) int {
		has := func(p *poolState) bool { return len(p.split.of[w.Namespace]) > 0 }
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), compareBool(has(b), has(a)), preference(a, b))
	})
	return slices.Values(slices.Concat(bound, split))
}

// hasOwn reports whether the namespace of a request has anything of its own that counts for its host, or could be given
// a block for it. Then it draws from nothing else, however full that is.
func (x *catalogue) hasOwn(w PickRequest) bool {
	return x.hasCertainly(w) ||
		w.Namespace != "" && slices.ContainsFunc(x.growing, func(p *poolState) bool { return p.lists(w) })
}

// hasCertainly reports what hasOwn does, without the blocks that the namespace could be given.
func (x *catalogue) hasCertainly(w PickRequest) bool {
	return len(x.bound[w.Namespace]) > 0 ||
		slices.ContainsFunc(x.owning[w.Namespace], func(p *poolState) bool { return p.ownsBlocks(w) })
}

// ownsBlocks reports whether the blocks that the namespace of a request has of a pool are its own for that request.
// What somebody gave it by hand or in an order is, on every host, as a pool is that is bound to it. What the pool gave
// by itself nobody decided on: one pod on one host would take the namespace off the default chain everywhere. It counts
// on the hosts of the pool alone, and where the pool is for who names it, for who does.
func (p *poolState) ownsBlocks(w PickRequest) bool {
	switch {
	case !p.AutoAssign || slices.ContainsFunc(p.split.of[w.Namespace], (*poolState).inOrder):
		return true
	case !p.Bound() && p.NotDefault:
		return false
	}
	return p.lists(w)
}

// ownNames names what the namespace of a request has of its own.
func (x *catalogue) ownNames(w PickRequest) []string { return poolNames(slices.Collect(x.own(w))) }

// beside returns the pools of the default chain that a namespace draws from on some of their hosts although it has
// something of its own: that is for other hosts.
func (x *catalogue) beside(namespace string) (some []*poolState) {
	if x.hasOwn(PickRequest{Namespace: namespace}) { // on whichever host
		return nil
	}
	var own []*netipx.IPSet
	for p := range x.own(PickRequest{Namespace: namespace, Ahead: true}) {
		own = append(own, p.drawing())
	}
	for _, p := range x.open {
		if !p.Terminating && !slices.Contains(x.growing, p) && len(ipaddr.Subtract(p.drawing(), own...).Ranges()) > 0 {
			some = append(some, p)
		}
	}
	return some
}

// drawing returns the hosts that may draw from a pool.
func (p *poolState) drawing() *netipx.IPSet {
	ranges := make([]netipx.IPRange, 0, len(p.Hosts)+len(p.HostSubnets)+len(p.Selected))
	for h := range p.byAddress() {
		ranges = append(ranges, netipx.IPRangeFrom(h, h))
	}
	for n := range p.HostSubnets {
		ranges = append(ranges, netipx.RangeOfPrefix(n))
	}
	return ipaddr.SetOf(ranges...)
}

// Own names what a namespace has of its own, or could be given a block of. With anything of its own it is not in the
// default chain. Without a valid host it is that on any host.
func (x *Pools) Own(namespace string, host netip.Addr) []string {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.pools.ownNames(PickRequest{Namespace: namespace, Host: host, Ahead: !host.IsValid()})
}

// OwnsEverywhere reports whether a namespace has something of its own that keeps it out of the default chain on every
// host: a pool that is bound to it, or a block that it was given by hand.
func (x *Pools) OwnsEverywhere(namespace string) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.pools.hasOwn(PickRequest{Namespace: namespace})
}

// Serves reports whether any pool is for requests of a namespace from a host that name neither a pool nor a network.
func (x *Pools) Serves(namespace string, host netip.Addr) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.pools.served(PickRequest{Namespace: namespace, Host: host})
}

// Unserved returns the hosts of the default chain on which a namespace gets no address, as it has something of its own
// that is for other hosts.
func (x *Pools) Unserved(namespace string) *netipx.IPSet {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	var hosts []netipx.IPRange
	var own []*netipx.IPSet
	if x.core.state.pools.hasOwn(PickRequest{Namespace: namespace}) {
		for p := range x.core.state.pools.own(PickRequest{Namespace: namespace, Ahead: true}) {
			own = append(own, p.drawing())
		}
		for _, p := range x.core.state.pools.open {
			hosts = append(hosts, p.drawing().Ranges()...)
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
	for _, p := range x.core.state.pools.open {
		if p.Terminating || slices.Contains(x.core.state.pools.growing, p) {
			continue
		}
		s, left := Shadow{Pool: p.Name}, p.drawing()
		for _, g := range x.core.state.pools.growing {
			if rest := ipaddr.Subtract(left, g.drawing()); !rest.Equal(left) {
				s.By, left = append(s.By, g.Name), rest
			}
		}
		if s.Whole = len(left.Ranges()) == 0; len(s.By) > 0 {
			all = append(all, s)
		}
	}
	return all
}
