package allocator

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// One attachment has the addresses of one request: a single lease, or as many as each of them says, of one network or
// of the ranges that the request names. Two replicas that serve it at once from different pictures may take more, also
// of two networks. What follows picks the same of them on every replica.

// oneSet splits the leases of an attachment into those that stay and those that are superfluous. Of two containers
// the newer has them, of one container the set that was whole first: its holder may have the answer already, and
// whatever is written later does not change that. A lease of an owner that names no container counts as one of the
// newest: asked again, either of the two is answered, or takes it over. While no set is whole none is superfluous:
// keep is what is to be completed.
func oneSet(all []lease.Lease, network func(pool string) string) (keep, over []lease.Lease) {
	if !tooMany(all, network) {
		return all, nil
	}
	rivals, aside := withoutRebuilt(all, perSlot(all))
	newest := newestOf(rivals).ContainerID
	var best []lease.Lease
	whole := false
	for _, set := range sets(rivals, network) {
		if !slices.ContainsFunc(set, func(l lease.Lease) bool { return l.ContainerID == newest || bare(l) }) {
			continue
		}
		isWhole := complete(set)
		switch {
		case best == nil, isWhole && !whole, isWhole == whole && lease.CompareBound(lastBound(set),
			lastBound(best)) < 0:
			best, whole = set, isWhole
		}
	}
	if mixed := perSlot(several(rivals)); !whole && complete(mixed) { // of ranges in more than one network
		best, whole = mixed, true
	}
	keep = slices.Concat(best, aside)
	if !whole {
		return keep, nil
	}
	return keep, slices.DeleteFunc(slices.Clone(all), func(l lease.Lease) bool {
		return slices.ContainsFunc(keep, func(k lease.Lease) bool { return k.Addr == l.Addr })
	})
}

// tooMany reports whether an attachment has two leases for one purpose, or one beside a lease that is complete alone.
// A lease that was made again from the report of a pod does not show how many there were.
func tooMany(all []lease.Lease, network func(pool string) string) bool {
	for i, l := range all {
		if alone(l) && !l.Rebuilt() && len(all) > 1 && !paired(l, all, network) && !failpoint.Broken("network") {
			return true
		}
		if slices.ContainsFunc(all[i+1:], func(o lease.Lease) bool { return sameSlot(l, o) }) {
			return true
		}
	}
	return false
}

func sameSlot(a, b lease.Lease) bool { return a.Addr.Is4() == b.Addr.Is4() && a.Slot == b.Slot }

// alone reports whether a lease is all that its holder was given.
func alone(l lease.Lease) bool { return l.SetSize <= 1 }

// paired reports whether a lease that says it is alone has a companion: the other family of its network, without a
// rival of its own there. Earlier releases made leases again without saying how many there were, and a container took
// them over like that: such a pod keeps both its addresses.
func paired(l lease.Lease, all []lease.Lease, network func(pool string) string) (paired bool) {
	name := network(l.Pool)
	if name == "" {
		return false
	}
	for _, o := range all {
		switch {
		case o.Addr == l.Addr || network(o.Pool) != name:
		case sameSlot(o, l) || o.Slot > 0:
			return false
		default:
			paired = true
		}
	}
	return paired
}

// several returns the leases that do not stand alone.
func several(ls []lease.Lease) []lease.Lease { return slices.DeleteFunc(slices.Clone(ls), alone) }

// perSlot returns the winner of each family and slot.
func perSlot(ls []lease.Lease) (out []lease.Lease) {
	for len(ls) > 0 {
		first := ls[0]
		like := func(l lease.Lease) bool { return sameSlot(l, first) }
		out = append(out, winner(slices.DeleteFunc(slices.Clone(ls), func(l lease.Lease) bool { return !like(l) })))
		ls = slices.DeleteFunc(slices.Clone(ls), like)
	}
	return out
}

// withoutRebuilt takes out the leases that were made again from the report of their pod: those that have no rival stay
// whoever wins, those that yield to a rival are superfluous.
func withoutRebuilt(all, winners []lease.Lease) (rivals, aside []lease.Lease) {
	for _, l := range all {
		switch {
		case !l.Rebuilt():
			rivals = append(rivals, l)
		case !slices.ContainsFunc(all, func(o lease.Lease) bool { return o.Addr != l.Addr && sameSlot(o, l) }):
			aside = append(aside, l)
		case slices.ContainsFunc(winners, func(w lease.Lease) bool { return w.Addr == l.Addr }):
			rivals = append(rivals, l)
		}
	}
	return rivals, aside
}

// sets returns the leases that belong together: each that stands alone, and those of one network.
func sets(ls []lease.Lease, network func(pool string) string) (out [][]lease.Lease) {
	by := map[string][]lease.Lease{}
	for _, l := range ls {
		if alone(l) && !paired(l, ls, network) {
			out = append(out, []lease.Lease{l})
			continue
		}
		key := network(l.Pool)
		by[key] = append(by[key], l)
	}
	if ranges := slices.ContainsFunc(ls, func(l lease.Lease) bool { return l.Slot > 0 }); ranges { // of any network
		return append(out, perSlot(several(ls)))
	}
	for _, network := range slices.Sorted(maps.Keys(by)) {
		out = append(out, perSlot(by[network]))
	}
	return out
}

// lastBound returns the last address that a set got.
func lastBound(set []lease.Lease) lease.Lease { return slices.MaxFunc(set, lease.CompareBound) }

// winner returns the one of several leases for one purpose that stays: of two containers the newer, of one container
// the lease that was written first: its holder may have the answer already. No write since then changes that. One
// that was made again from what the pod reported yields to one that a container had before: who made it did not
// know of that.
func winner(ls []lease.Lease) lease.Lease {
	ls = slices.DeleteFunc(slices.Clone(ls), func(made lease.Lease) bool {
		return made.Rebuilt() && slices.ContainsFunc(ls, func(o lease.Lease) bool {
			return o.ContainerID != "" && lease.CompareBound(o, made) < 0
		})
	})
	keep := newestOf(ls)
	newest := keep.ContainerID
	for _, l := range ls {
		if (l.ContainerID == newest || bare(l)) && lease.CompareBound(l, keep) < 0 {
			keep = l
		}
	}
	return keep
}

// bare reports whether a lease is of an owner that named no container, which it need not.
func bare(l lease.Lease) bool { return l.Owner != "" && l.ContainerID == "" }

// newestOf returns a lease of the container that came last.
func newestOf(ls []lease.Lease) lease.Lease {
	if named := slices.DeleteFunc(slices.Clone(ls), bare); len(named) > 0 {
		ls = named
	}
	return slices.MaxFunc(ls, func(a, b lease.Lease) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), lease.CompareBound(a, b))
	})
}
