package allocator

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// doubles are pods and owners that seem to hold two addresses of one family, or of two networks, on one interface. An ADD
// that finds this mends it; but the one that took the second may have ended before its confirmation, with its client or its
// replica, and its holder may live for long without another. Leases of owners are never collected.
type doubles struct {
	mu sync.Mutex
	by map[double]ipam.Holder
}

// double is an attachment.
type double struct{ owner, podUID, ifName string }

func (d double) compare(o double) int {
	return cmp.Or(cmp.Compare(d.owner, o.owner), cmp.Compare(d.podUID, o.podUID), cmp.Compare(d.ifName, o.ifName))
}

func newDoubles() *doubles { return &doubles{by: map[double]ipam.Holder{}} }

func (d *doubles) put(h ipam.Holder) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.by[double{h.Owner, h.PodUID, h.IfName}] = h
}

// take empties the set.
func (d *doubles) take() map[double]ipam.Holder {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.by
	d.by = map[double]ipam.Holder{}
	return all
}

// isDouble reports whether the holder of a lease has more than one request gets. One whose interface nobody knows, as it
// was made again from what its pod reports, is no double of any: it may be another interface's.
func (a *Allocator) isDouble(l ipam.Lease) bool {
	if l.State != ipam.Active || l.PodUID == "" && l.Owner == "" || l.IfName == "" {
		return false
	}
	const few = 16 // most requests get one or two; a holder of thousands must not cost each of them all others
	some, all := a.index.SomeInUse(l.Holder, few)
	if !all && !tooMany(some, a.network) {
		some = slices.DeleteFunc(a.index.ByAttachment(l.Holder), func(l ipam.Lease) bool { return l.State != ipam.Active })
	}
	return tooMany(some, a.network)
}

// settleDoubles has the doubles keep what an ADD would answer. Those that it could not look at come again.
func (a *Allocator) settleDoubles(ctx context.Context) {
	all := a.doubles.take()
	for _, key := range slices.SortedFunc(maps.Keys(all), double.compare) {
		h := all[key]
		if !a.settleDouble(ctx, h) {
			a.doubles.put(h)
		}
	}
}

func (a *Allocator) settleDouble(ctx context.Context, h ipam.Holder) bool {
	ctx, cancel := context.WithTimeout(ctx, settleEvery)
	defer cancel()
	release, err := a.locks.acquire(ctx, Request{Owner: h.Owner, Namespace: h.Namespace, PodName: h.PodName, IfName: h.IfName}.key())
	if err != nil {
		return false
	}
	defer release()
	held, again, err := a.held(ctx, ipam.Holder{Owner: h.Owner, PodUID: h.PodUID, IfName: h.IfName})
	return err == nil && !again && a.settleReported(ctx, held)
}

// settleReported releases what was made again from the report of a pod, where a container of it has all that one request
// gets, once the pod reports what that container has, and no longer this. Until then the pod may have it, as the last
// container that it tells of may be another: settled is false, and it comes again.
func (a *Allocator) settleReported(ctx context.Context, held []ipam.Lease) (settled bool) {
	i := slices.IndexFunc(held, func(l ipam.Lease) bool { return !l.Rebuilt() })
	if i < 0 {
		return true
	}
	own := a.withoutReported(held[i].Holder, held)
	for _, l := range held {
		if slices.ContainsFunc(own, func(o ipam.Lease) bool { return o.Addr == l.Addr }) {
			continue
		}
		instead, settled := a.reportsOthers(ctx, l, own, a.cachedPod)
		if instead {
			instead, settled = a.reportsOthers(ctx, l, own, a.pods.FindLive)
		}
		if !instead {
			return settled
		}
		a.log.Info("releasing an address that a pod reported once, and has another in its place", "address", l.Addr.String(), "kept", addresses(own), "pod", l.Who())
		if _, err := FreeLease(ctx, a.leases, l, ipam.Change{}, func(now ipam.Lease) bool { return now.Rebuilt() && l.SameHolding(now) }); err != nil {
			return false
		}
	}
	return true
}

// reportsOthers reports whether the pod of a lease has others by its own word, and not it; settled that it is for the
// collection to say what becomes of the lease.
func (a *Allocator) reportsOthers(ctx context.Context, l ipam.Lease, others []ipam.Lease, find findPod) (instead, settled bool) {
	pod, err := find(ctx, l.Namespace, l.PodName, l.PodUID)
	if err != nil {
		return false, errors.Is(err, workload.ErrNotFound)
	}
	check, _ := gone.Record(l, &pod, gone.Indexed(a.index), a.leases.Now())
	instead = check == gone.PodOtherAddress && !slices.ContainsFunc(others, func(o ipam.Lease) bool { return !slices.Contains(pod.Addrs, o.Addr) })
	return instead, check != "" && check != gone.PodOtherAddress
}

// findPod finds a pod by its UID.
type findPod func(ctx context.Context, namespace, name, uid string) (workload.Pod, error)

// cachedPod is the pod of a lease as the cache has it: that costs nothing however often it is asked.
func (a *Allocator) cachedPod(ctx context.Context, namespace, name, uid string) (workload.Pod, error) {
	return a.pods.Find(ctx, namespace, name, uid, netip.Addr{})
}
