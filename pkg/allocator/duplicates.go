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
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// duplicates remembers the attachments that seem to hold two addresses of one family, or of two networks. An ADD that
// finds duplicate leases releases all but one set. But the ADD that took the second set may have ended before its
// confirmation, with its client or its replica, and its holder may live for long without another one. Leases of owners
// are never collected.
type duplicates struct {
	mu sync.Mutex
	by map[attachment]lease.Holder
}

// attachment is one interface of one pod or owner, which the UID alone does not identify: see
// lease.Holder.HasOtherName.
type attachment struct{ who, podUID, ifName string }

func (d attachment) compare(o attachment) int {
	return cmp.Or(cmp.Compare(d.who, o.who), cmp.Compare(d.podUID, o.podUID), cmp.Compare(d.ifName, o.ifName))
}

func newDuplicates() *duplicates { return &duplicates{by: map[attachment]lease.Holder{}} }

func (d *duplicates) put(h lease.Holder) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.by[attachment{Request{Owner: h.Owner, Namespace: h.Namespace, PodName: h.PodName}.who(), h.PodUID, h.IfName}] = h
}

// drain empties the set and returns what was in it.
func (d *duplicates) drain() map[attachment]lease.Holder {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.by
	d.by = map[attachment]lease.Holder{}
	return all
}

// isDuplicate reports whether the holder of a lease has more than one request gets. A lease of an unknown interface,
// made again from what its pod reports, is not a duplicate of any: it may be another interface's.
func (m *Repairer) isDuplicate(l lease.Lease) bool {
	if l.State != lease.Active || l.PodUID == "" && l.Owner == "" || l.IfName == "" {
		return false
	}
	const few = 16 // most requests get one or two; a holder of thousands must not cost each of them all others
	some, all := m.engine.index.Leases.SomeInUse(l.Holder, few)
	if !all && !tooMany(some, m.engine.network) {
		some = slices.DeleteFunc(m.engine.index.Leases.ByAttachment(l.Holder),
			func(l lease.Lease) bool { return l.State != lease.Active })
	}
	return tooMany(some, m.engine.network)
}

// releaseDuplicates releases duplicate leases: each attachment keeps what an ADD would answer. An attachment that could
// not be read comes again.
func (m *Repairer) releaseDuplicates(ctx context.Context) {
	all := m.duplicates.drain()
	for _, key := range slices.SortedFunc(maps.Keys(all), attachment.compare) {
		h := all[key]
		if !m.releaseDuplicatesOf(ctx, h) {
			m.duplicates.put(h)
		}
	}
}

func (m *Repairer) releaseDuplicatesOf(ctx context.Context, h lease.Holder) bool {
	ctx, cancel := context.WithTimeout(ctx, leftoverPeriod)
	defer cancel()
	of := Request{Owner: h.Owner, Namespace: h.Namespace, PodName: h.PodName, IfName: h.IfName}
	release, err := m.engine.locks.acquire(ctx, of.key())
	if err != nil {
		return false
	}
	defer release()
	held, err := m.holdings.of(ctx, lease.Holder{
		Owner: h.Owner, Namespace: h.Namespace, PodName: h.PodName, PodUID: h.PodUID, IfName: h.IfName,
	})
	return err == nil && m.releaseReported(ctx, held)
}

// releaseReported releases leases that were made again from the report of a pod, where a container of the pod has all
// that one request gets, once the pod reports the container's addresses and no longer these. Until then the pod may
// have them, as the container that it reported last may be another one: done is false, and the attachment comes again.
func (m *Repairer) releaseReported(ctx context.Context, held []lease.Lease) (done bool) {
	i := slices.IndexFunc(held, func(l lease.Lease) bool { return !l.Rebuilt() })
	if i < 0 {
		return true
	}
	own := withoutReported(held[i].Holder, held, m.engine.network)
	for _, l := range held {
		if slices.ContainsFunc(own, func(o lease.Lease) bool { return o.Addr == l.Addr }) {
			continue
		}
		instead, collected := m.reportsOthers(ctx, l, own, m.cachedPod)
		if instead {
			instead, collected = m.reportsOthers(ctx, l, own, m.engine.pods.FindLive)
		}
		if !instead {
			return collected
		}
		m.engine.log.Info("releasing an address that a pod reported once, and has another in its place", "address",
			l.Addr.String(), "kept", addresses(own), "pod", l.Who())
		if _, err := FreeLease(ctx, m.engine.leases, l, lease.Change{},
			func(now lease.Lease) bool { return now.Rebuilt() && l.SameHolding(now) }); err != nil {
			return false
		}
	}
	return true
}

// reportsOthers reports whether the pod of a lease reports the others and not this one. collected means that the
// garbage collection decides about the lease.
func (m *Repairer) reportsOthers(
	ctx context.Context, l lease.Lease, others []lease.Lease, find findPod,
) (instead, collected bool) {
	pod, err := find(ctx, l.Namespace, l.PodName, l.PodUID)
	if err != nil {
		return false, errors.Is(err, workload.ErrNotFound)
	}
	check, _ := gone.Record(l, &pod, gone.Indexed(m.engine.index.Leases), m.engine.leases.Now())
	instead = check == gone.PodOtherAddress &&
		!slices.ContainsFunc(others, func(o lease.Lease) bool { return !slices.Contains(pod.Addrs, o.Addr) })
	return instead, check != "" && check != gone.PodOtherAddress
}

// findPod finds a pod by its UID.
type findPod func(ctx context.Context, namespace, name, uid string) (workload.Pod, error)

// cachedPod finds the pod of a lease in the cache, which costs no request.
func (m *Repairer) cachedPod(ctx context.Context, namespace, name, uid string) (workload.Pod, error) {
	return m.engine.pods.Find(ctx, namespace, name, uid, netip.Addr{})
}
