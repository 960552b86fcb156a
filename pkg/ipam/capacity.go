package ipam

import (
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Outside is the part of some addresses that a pool does not serve; with an empty name, that none does.
func (x *poolView) Outside(some *netipx.IPSet, pool string) *netipx.IPSet {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var served []netipx.IPRange
	for _, s := range x.segments {
		if (pool == "" || s.pool.Name == pool) && some.OverlapsRange(s.IPRange) {
			served = append(served, s.IPRange)
		}
	}
	return ipaddr.Subtract(some, ipaddr.SetOf(served...))
}

// Capacity is how many addresses a request that is ahead of all pods could draw from in all, taken or not, of the family
// of which there are more; for any of some namespaces. It saturates at 2^64-1. The pools are in order of their names.
func (x *Index) Capacity(w PickRequest, namespaces []string) (n uint64, pools []string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var by [2]uint64
	for _, w.Namespace = range namespaces {
		for p := range x.fitting(w) {
			if !slices.Contains(pools, p.Name) {
				pools = append(pools, p.Name)
				by[p.Family()] = ipaddr.AddSaturated(by[p.Family()], p.set.n)
			}
		}
	}
	slices.Sort(pools)
	return max(by[ipaddr.IPv4], by[ipaddr.IPv6]), pools
}
