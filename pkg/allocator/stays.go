package allocator

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Only this file decides who stays of two. Each rule reads only the leases and the request, so that every replica
// decides alike, whatever it saw first:
//
//	one container, twice                 the set that was whole first: its holder may have the answer already
//	two containers of a pod              the newer one
//	an owner, and its container          the lease that was written first
//	a pod's report, and its container    the container, unless its lease came second
//	two requesters of one container      the one that has the lease
//	two pods of one name                 the one that the API server has
//	two new pods of one key              the one that was written first
//	a pod of a key, and the next one     the earlier one, until it is gone (succession)
//	an ADD and a DEL of its container    what began later; the DEL if both began at once (tombstones)
//
// One attachment has the addresses of one request: a single lease, or as many as each of them says, of one network or
// of the ranges that the request names. Two replicas that serve it at once from different pictures may take more, also
// of two networks.

// rivalry is the question which of its leases an attachment keeps.
type rivalry struct {
	holder lease.Holder
	// network returns the network of a pool.
	network func(pool string) string
	// liveUID returns the UID that the pod of a name has at the API server, empty if there is no such pod. It is called
	// only if the answer depends on it.
	liveUID func(namespace, name string) (string, error)
	// caughtUp is called with all leases before one of them counts as surplus. Its error ends the decision.
	caughtUp func(all []lease.Lease) error
}

// decide splits the leases in use of an attachment into those that stay and those that are surplus. Leases in neither
// of the two are left alone: another pod may have them.
func (r rivalry) decide(all []lease.Lease) (keep, surplus []lease.Lease, err error) {
	if all, err = r.ofOnePod(all); err != nil {
		return nil, nil, err
	}
	if keep, surplus = oneSet(all, r.network); len(surplus) == 0 {
		return keep, nil, nil
	}
	if err := r.caughtUp(all); err != nil {
		return nil, nil, err
	}
	surplus, err = r.withoutEarlierPods(keep, surplus)
	return keep, surplus, err
}

// ofOnePod takes out the leases of other containers that belong to another pod. A cache that lags may have taken a
// request that names no UID for one of the earlier pod of its name. Its container may have been served under the right
// UID before.
func (r rivalry) ofOnePod(all []lease.Lease) ([]lease.Lease, error) {
	h := r.holder
	others := func(l lease.Lease) bool { return l.ContainerID != h.ContainerID }
	served := func(l lease.Lease) bool { return !others(l) && l.PodUID != h.PodUID }
	if h.ContainerID == "" || h.Owner != "" || h.UIDNamed || failpoint.Broken("uid") ||
		!slices.ContainsFunc(all, served) || !slices.ContainsFunc(all, others) {
		return all, nil
	}
	uid, err := r.liveUID(h.Namespace, h.PodName)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(l lease.Lease) bool { return others(l) && l.PodUID != uid }), nil
}

// withoutEarlierPods takes out of the surplus the leases that another pod may have. Of two containers of a pod the
// newer one has its address. If that one's request named no UID, a cache that lags may have taken it for the pod
// before, whose container runs on for a while after a deletion by force.
func (r rivalry) withoutEarlierPods(keep, surplus []lease.Lease) ([]lease.Lease, error) {
	unsure := func(l lease.Lease) bool {
		return l.Owner == "" && l.PodName != "" && slices.ContainsFunc(keep, func(k lease.Lease) bool {
			return k.ContainerID != l.ContainerID && !k.UIDNamed
		})
	}
	i := slices.IndexFunc(surplus, unsure)
	if i < 0 || failpoint.Broken("uid") {
		return surplus, nil
	}
	uid, err := r.liveUID(surplus[i].Namespace, surplus[i].PodName)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(surplus),
		func(l lease.Lease) bool { return unsure(l) && l.PodUID != uid }), nil
}

// withoutReported takes out the leases that were made again from the report of the pod, if a container by its ID has
// all that one request gets: what its pod reported is of another request, or of another interface. They are left alone,
// as the pod may have them, and they are not a reason to refuse what the container was given.
func withoutReported(h lease.Holder, held []lease.Lease, network func(pool string) string) []lease.Lease {
	own := slices.DeleteFunc(slices.Clone(held),
		func(l lease.Lease) bool { return l.ContainerID == "" || l.ContainerID != h.ContainerID })
	if len(own) == len(held) || !complete(own) || alone(own[0]) && paired(own[0], held, network) {
		return held
	}
	return slices.DeleteFunc(slices.Clone(held), lease.Lease.Rebuilt)
}

// sameRequester reports whether a lease of a container is for the pod or owner that now asks in the
// container's name. The UIDs may differ: one of them can be out of date.
func sameRequester(l, h lease.Holder) bool {
	return l.Owner == h.Owner && (h.Owner != "" || l.PodName == "" || l.Namespace == h.Namespace &&
		l.PodName == h.PodName)
}

// isOf reports whether a lease is of the request's container; an owner need not name one.
func (r Request) isOf(l lease.Lease) bool {
	return l.ContainerID == r.ContainerID || r.ContainerID == ""
}

// olderThan reports whether a lease is for a newer container of the request's pod than the request's.
func (r Request) olderThan(l lease.Lease) bool {
	return !failpoint.Broken("supersession") &&
		(slices.Contains(l.Superseded, r.ContainerID) || l.StartedAt.After(r.StartedAt))
}

// tookItself reports whether a request got a lease by itself, and its holder had not been given it before.
func (r Request) tookItself(l lease.Lease) bool { return l.StartedAt.Equal(r.StartedAt) }

// ofAnotherPod reports whether an address is in use on the interface of a holder, and not by the holder itself.
func ofAnotherPod(h lease.Holder, l lease.Lease) bool {
	return l.State == lease.Active && l.IfName == h.IfName && !l.SameAttachment(h) &&
		(l.Other == nil || !l.Other.SameAttachment(h))
}

// cameFirst reports whether one of two leases of a key, for the same purpose, was written before the other one.
func cameFirst(first, second lease.Lease) bool {
	return sameSlot(first, second) && lease.CompareBound(first, second) < 0
}

// complete reports whether what is held is all that its holder was given.
func complete(held []lease.Lease) bool { return len(held) > 0 && len(held) >= held[0].SetSize }

// oneSet splits the leases of an attachment into those that stay and those that are surplus. Of two containers the
// newer keeps its leases. Of one container the set that was whole first stays: its holder may have the answer already,
// and no later write changes that. A lease of an owner that names no container counts as one of the newest container:
// if the owner asks again, the lease is answered, or the new container takes it over. If no set is whole, no lease is
// surplus, and keep is the set that the allocator completes.
func oneSet(all []lease.Lease, network func(pool string) string) (keep, surplus []lease.Lease) {
	if !tooMany(all, network) {
		return all, nil
	}
	rivals, unrivalled := withoutRebuilt(all, perSlot(all))
	newest := newestOf(rivals).ContainerID
	var best []lease.Lease
	whole := false
	for _, set := range sets(rivals, network) {
		if !slices.ContainsFunc(set, func(l lease.Lease) bool { return l.ContainerID == newest || ownerOnly(l) }) {
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
	keep = slices.Concat(best, unrivalled)
	if !whole {
		return keep, nil
	}
	return keep, slices.DeleteFunc(slices.Clone(all), func(l lease.Lease) bool {
		return slices.ContainsFunc(keep, func(k lease.Lease) bool { return k.Addr == l.Addr })
	})
}

// tooMany reports whether an attachment has two leases for one purpose, or another lease beside one that is complete
// alone. A lease that was made again from the report of a pod does not show how many there were.
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

// sameSlot reports whether two leases are for one purpose: of one family, and of one of the ranges of a request.
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
		sameSlotAs := func(l lease.Lease) bool { return sameSlot(l, first) }
		out = append(out, winner(slices.DeleteFunc(slices.Clone(ls),
			func(l lease.Lease) bool { return !sameSlotAs(l) })))
		ls = slices.DeleteFunc(slices.Clone(ls), sameSlotAs)
	}
	return out
}

// withoutRebuilt takes out the leases that were made again from the report of their pod. Those without a rival stay in
// any case. Those that yield to a rival are surplus.
func withoutRebuilt(all, winners []lease.Lease) (rivals, unrivalled []lease.Lease) {
	for _, l := range all {
		switch {
		case !l.Rebuilt():
			rivals = append(rivals, l)
		case !slices.ContainsFunc(all, func(o lease.Lease) bool { return o.Addr != l.Addr && sameSlot(o, l) }):
			unrivalled = append(unrivalled, l)
		case slices.ContainsFunc(winners, func(w lease.Lease) bool { return w.Addr == l.Addr }):
			rivals = append(rivals, l)
		}
	}
	return rivals, unrivalled
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

// winner returns which of several leases for one purpose stays: of two containers that of the newer one, of one
// container the lease that was written first, as its holder may have the answer already. No later write changes that. A
// rebuilt lease yields to an older lease of a container: whoever rebuilt it did not know the older lease.
func winner(ls []lease.Lease) lease.Lease {
	ls = slices.DeleteFunc(slices.Clone(ls), func(made lease.Lease) bool {
		return made.Rebuilt() && slices.ContainsFunc(ls, func(o lease.Lease) bool {
			return o.ContainerID != "" && lease.CompareBound(o, made) < 0
		})
	})
	keep := newestOf(ls)
	newest := keep.ContainerID
	for _, l := range ls {
		if (l.ContainerID == newest || ownerOnly(l)) && lease.CompareBound(l, keep) < 0 {
			keep = l
		}
	}
	return keep
}

// ownerOnly reports whether a lease is of an owner that named no container. It need not name one.
func ownerOnly(l lease.Lease) bool { return l.Owner != "" && l.ContainerID == "" }

// newestOf returns a lease of the container that came last.
func newestOf(ls []lease.Lease) lease.Lease {
	if named := slices.DeleteFunc(slices.Clone(ls), ownerOnly); len(named) > 0 {
		ls = named
	}
	return slices.MaxFunc(ls, func(a, b lease.Lease) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), lease.CompareBound(a, b))
	})
}
