package ipam

import (
	"iter"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// leaseView answers questions about leases and claims.
type leaseView struct{ *guarded }

// Get returns the entry of an address; ok is false when it has no object.
func (x *leaseView) Get(a netip.Addr) (lease.Lease, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	r := x.record(a)
	if r == nil {
		return lease.Lease{Addr: a, Epoch: x.epoch}, false
	}
	return r.lease(), true
}

// Len returns how many addresses have an object.
func (x *leaseView) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.byAddr.size
}

// ByContainer returns the addresses that a container holds, seen from its attachment; an empty ifName means all its
// interfaces.
func (x *leaseView) ByContainer(id, ifName string) []lease.Lease {
	key := compactHex(id)
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []lease.Lease
	for r := x.byContainer.first(x.hash().container(key)); r != nil; r = r.nextContainer {
		if r.container() == key && (ifName == "" || r.ifName() == ifName) {
			out = append(out, r.lease())
		}
	}
	for _, r := range x.second.containers[key] {
		if ifName == "" || r.other().IfName == ifName {
			out = append(out, r.lease().Turned())
		}
	}
	return sorted(out)
}

// ByAttachment returns the addresses that a pod (by UID) or an owner holds on an interface, on all of them when
// IfName is empty, seen from its attachments. The holder's other fields do not count. A holder without pod UID and
// owner has none.
func (x *leaseView) ByAttachment(h lease.Holder) []lease.Lease {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []lease.Lease
	for a := range x.attached(h) {
		out = append(out, a.lease())
	}
	return sorted(out)
}

// SomeInUse returns up to n of the addresses that a holder, as ByAttachment looks for it, has in use, in no order. It
// reports whether these are all. A holder of thousands, as of objects that somebody wrote by hand, takes no longer.
func (x *leaseView) SomeInUse(h lease.Holder, n int) (some []lease.Lease, all bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for a := range x.attached(h) {
		if a.state != lease.Active {
			continue
		}
		if len(some) == n {
			return some, false
		}
		some = append(some, a.lease())
	}
	return some, true
}

// HasOfClaim reports whether a holder, as ByAttachment looks for it, has an address of a claim in use.
func (x *leaseView) HasOfClaim(h lease.Holder, claim string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for a := range x.attached(h) {
		if a.state == lease.Active && a.claim() == claim {
			return true
		}
	}
	return false
}

// ByHost returns the addresses in use or reserved on a host, seen from there.
func (x *leaseView) ByHost(host netip.Addr) []lease.Lease {
	x.mu.RLock()
	out := leases(x.byHost[host])
	x.mu.RUnlock()
	for i, l := range out {
		out[i], _ = l.From(func(l lease.Lease) bool { return l.Host == host })
	}
	return sorted(out)
}

// Contested returns the addresses with a report that somebody else answers for them, however old it is.
func (x *leaseView) Contested() Contested {
	x.mu.RLock()
	out := leases(x.contested)
	x.mu.RUnlock()
	return sorted(out)
}

// ByPool returns the addresses whose object names a pool.
func (x *leaseView) ByPool(name string) []lease.Lease {
	x.mu.RLock()
	var out []lease.Lease
	if m := x.byPool[name]; m != nil {
		out = leases(m.records)
	}
	x.mu.RUnlock()
	return sorted(out)
}

// ByPoolIn returns the leases of some addresses that name a pool, in order. It looks at those addresses, or at the
// pool's leases where these are fewer.
func (x *leaseView) ByPoolIn(name string, in *netipx.IPSet) (out []lease.Lease) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	m := x.byPool[name]
	if m == nil {
		return nil
	}
	if ipaddr.SizeOfSet(in) < uint64(len(m.records)) {
		for a := range addressesOf(in) {
			if r := x.record(a); r != nil && r.params.Value().Pool == name {
				out = append(out, r.lease())
			}
		}
		return out
	}
	for r := range m.records {
		if in.Contains(r.addr) {
			out = append(out, r.lease())
		}
	}
	return sorted(out)
}

// addressesOf returns the addresses of a set in order.
func addressesOf(set *netipx.IPSet) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, r := range set.Ranges() {
			for a := r.From(); r.Contains(a); a = a.Next() {
				if !yield(a) {
					return
				}
			}
		}
	}
}

func leases(records map[*record]struct{}) []lease.Lease {
	out := make([]lease.Lease, 0, len(records))
	for r := range records {
		out = append(out, r.lease())
	}
	return out
}

func sorted(ls []lease.Lease) []lease.Lease {
	slices.SortFunc(ls, func(a, b lease.Lease) int { return a.Addr.Compare(b.Addr) })
	return ls
}

// Find returns the addresses that have an object and match, in order.
func (x *leaseView) Find(match func(lease.Lease) bool) []lease.Lease {
	var out []lease.Lease
	x.Each(func(l lease.Lease) {
		if match(l) {
			out = append(out, l)
		}
	})
	return sorted(out)
}

// Entry is what the index had of an address at a moment. It takes a word, and its lease can be made again and again.
type Entry struct{ record *record }

// Lease returns the lease of the entry.
func (e Entry) Lease() lease.Lease { return e.record.lease() }

// Each calls fn with every address that has an object, in no order.
func (x *leaseView) Each(fn func(lease.Lease)) {
	x.EachEntry(func(e Entry, _ lease.State) { fn(e.Lease()) })
}

// EachEntry calls fn as Each does, for those who keep some of many. It holds the index only while it takes note of the
// entries, which never change.
func (x *leaseView) EachEntry(fn func(Entry, lease.State)) {
	x.mu.RLock()
	records := make([]*record, 0, x.byAddr.size)
	for r := range x.byAddr.all() {
		records = append(records, r)
	}
	x.mu.RUnlock()
	for _, r := range records {
		fn(Entry{r}, r.state)
	}
}

// Missing returns the lease of an address as it was when its object went, or went back; ok is false when it is not
// missing.
func (x *leaseView) Missing(a netip.Addr) (l lease.Lease, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if _, behind := x.behind[a]; behind {
		return x.record(a).lease(), true
	}
	r, ok := x.missing[a]
	if !ok {
		return lease.Lease{Addr: a}, false
	}
	return r.lease(), true
}

// MissingOf returns an address that an attachment had when its object went; ok is false when there is none.
func (x *leaseView) MissingOf(h lease.Holder) (l lease.Lease, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	held := func(l lease.Lease) bool { return l.IsHeldBy(h) }
	for _, r := range x.missing {
		if l, ok := r.lease().From(held); ok {
			return l, true
		}
	}
	for a := range x.behind {
		if l, ok := x.record(a).lease().From(held); ok {
			return l, true
		}
	}
	return lease.Lease{}, false
}

// CountMissing returns how many addresses are missing.
func (x *leaseView) CountMissing() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.missing) + len(x.behind)
}

// PodsOn returns how many pods hold addresses on one host, which may have several addresses itself. Its cost is that of
// the addresses that are held there.
func (x *leaseView) PodsOn(host []netip.Addr) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	pods := map[compact]struct{}{}
	for _, h := range host {
		for r := range x.byHost[h] {
			if r.state != lease.Active || r.owner() != "" {
				continue
			}
			who := r.uid()
			if who.bytes == "" {
				who = r.container()
			}
			if o := r.other(); o != nil && r.host.Value() != h {
				who = compactUUID(o.PodUID)
			}
			pods[who] = struct{}{}
		}
	}
	return len(pods)
}

// ByClaim returns the addresses of a claim: those in use and those that are kept for it.
func (x *leaseView) ByClaim(claim string) []lease.Lease {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []lease.Lease
	for r := range x.claimed(claim) {
		out = append(out, r.lease())
	}
	return sorted(out)
}

// ByKey returns the addresses of a claim that are for one pod of it, by its primary key; in use or kept.
func (x *leaseView) ByKey(claim, key string) []lease.Lease {
	if claim == "" || key == "" {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []lease.Lease
	for r := range x.keyed(claim, key) {
		out = append(out, r.lease())
	}
	return sorted(out)
}
