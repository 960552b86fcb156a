package ipam

import (
	"slices"

	"go4.org/netipx"
)

// Outside is the part of some addresses that a pool does not serve; with an empty name, that none does.
func (x *Index) Outside(some *netipx.IPSet, pool string) *netipx.IPSet {
	var b netipx.IPSetBuilder
	b.AddSet(some)
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, s := range x.segments {
		if (pool == "" || s.pool.Name == pool) && some.OverlapsRange(s.IPRange) {
			b.RemoveRange(s.IPRange)
		}
	}
	out, _ := b.IPSet() // ranges of pools are valid
	return out
}

// Capacity is how many addresses a request that is ahead of all pods could draw from in all, taken or not, of the family
// of which there are more; for any of some namespaces. It saturates at 2^64-1. The pools are in order of their names.
func (x *Index) Capacity(w PickRequest, namespaces []string) (n uint64, pools []string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	by := map[bool]uint64{}
	for _, w.Namespace = range namespaces {
		for p := range x.fitting(w) {
			if !slices.Contains(pools, p.Name) {
				pools = append(pools, p.Name)
				by[p.is4()] = addSaturated(by[p.is4()], p.set.n)
			}
		}
	}
	slices.Sort(pools)
	return max(by[true], by[false]), pools
}

// OfFamily is the part of a set that is of one family.
func OfFamily(s *netipx.IPSet, is4 bool) *netipx.IPSet {
	var b netipx.IPSetBuilder
	for _, r := range s.Ranges() {
		if r.From().Is4() == is4 {
			b.AddRange(r)
		}
	}
	set, _ := b.IPSet() // ranges of a set are valid
	return set
}
