package memory

import (
	"cmp"
	"iter"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Own returns what the namespace of a request has of its own: the pools that are bound to it, then those in which it
// has blocks, or of which it could be given one; of equal priority, those first in which it has some.
func (x *Catalogue) Own(w ipam.PickRequest) iter.Seq[*PoolState] {
	bound := x.bound[w.Namespace]
	if x.splits == 0 { // as nearly always
		return slices.Values(bound)
	}
	split := slices.DeleteFunc(slices.Clone(x.owning[w.Namespace]), func(p *PoolState) bool { return !p.ownsBlocks(w) })
	for _, p := range x.Growing {
		if len(bound) == 0 && p.Lists(w) && !slices.Contains(split, p) {
			split = append(split, p)
		}
	}
	split = slices.DeleteFunc(split, func(p *PoolState) bool { return slices.Contains(bound, p) })
	slices.SortFunc(split, func(a, b *PoolState) int {
		has := func(p *PoolState) bool { return len(p.Split.Owns(w.Namespace)) > 0 }
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), ipam.FalseFirst(has(b), has(a)), Preference(a, b))
	})
	return slices.Values(slices.Concat(bound, split))
}

// HasOwn reports whether the namespace of a request has its own pools or blocks that count for its host, or could get a
// block for it. Then it draws only from these, however full they are.
func (x *Catalogue) HasOwn(w ipam.PickRequest) bool {
	return x.hasCertainly(w) ||
		w.Namespace != "" && slices.ContainsFunc(x.Growing, func(p *PoolState) bool { return p.Lists(w) })
}

// hasCertainly reports what HasOwn does, without the blocks that the namespace could be given.
func (x *Catalogue) hasCertainly(w ipam.PickRequest) bool {
	return len(x.bound[w.Namespace]) > 0 ||
		slices.ContainsFunc(x.owning[w.Namespace], func(p *PoolState) bool { return p.ownsBlocks(w) })
}

// ownsBlocks reports whether the blocks that the namespace of a request has of a pool are its own for that request. A
// block that was assigned by hand or by an order counts on every host, like a bound pool. Nobody decided on a block
// that was assigned automatically: if it counted everywhere, one pod on one host would take its namespace off the
// default chain on all hosts. Such a block counts only on the hosts of the pool. If the pool has default: false, it
// counts only for requests that name the pool.
func (p *PoolState) ownsBlocks(w ipam.PickRequest) bool {
	switch {
	case !p.AutoAssign || slices.ContainsFunc(p.Split.Owns(w.Namespace), (*PoolState).inOrder):
		return true
	case !p.Bound() && p.NotDefault:
		return false
	}
	return p.Lists(w)
}

// OwnNames names what the namespace of a request has of its own.
func (x *Catalogue) OwnNames(w ipam.PickRequest) []string { return PoolNames(slices.Collect(x.Own(w))) }

// Beside returns the pools of the default chain that a namespace draws from on some of their hosts, although it has
// blocks on other hosts.
func (x *Catalogue) Beside(namespace string) (some []*PoolState) {
	if x.HasOwn(ipam.PickRequest{Namespace: namespace}) { // on whichever host
		return nil
	}
	var own []*netipx.IPSet
	for p := range x.Own(ipam.PickRequest{Namespace: namespace, Ahead: true}) {
		own = append(own, p.Drawing())
	}
	for _, p := range x.Open {
		if !p.Terminating && !slices.Contains(x.Growing, p) && len(ipaddr.Subtract(p.Drawing(), own...).Ranges()) > 0 {
			some = append(some, p)
		}
	}
	return some
}

// Drawing returns the hosts that may draw from a pool.
func (p *PoolState) Drawing() *netipx.IPSet {
	ranges := make([]netipx.IPRange, 0, len(p.Hosts)+len(p.HostSubnets)+len(p.Selected))
	for h := range p.ByAddress() {
		ranges = append(ranges, netipx.IPRangeFrom(h, h))
	}
	for n := range p.HostSubnets {
		ranges = append(ranges, netipx.RangeOfPrefix(n))
	}
	return ipaddr.SetOf(ranges...)
}
