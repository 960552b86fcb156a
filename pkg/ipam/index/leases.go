package index

import (
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// Leases answers questions about leases and claims.
type Leases struct{ core *core }

// Get returns the entry of an address; ok is false when it has no object.
func (x *Leases) Get(a netip.Addr) (lease.Lease, bool) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	r := x.core.state.Leases.Record(a)
	if r == nil {
		return lease.Lease{Addr: a, Epoch: x.core.state.Progress.Epoch}, false
	}
	return r.Lease(), true
}

// Len returns how many addresses have an object.
func (x *Leases) Len() int {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.Leases.ByAddr.Size
}

// ByContainer returns the addresses that a container holds, seen from its attachment; an empty ifName means all its
// interfaces.
func (x *Leases) ByContainer(id, ifName string) []lease.Lease {
	key := ledger.PackHex(id)
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	var out []lease.Lease
	for r := x.core.state.Leases.OfContainer(key); r != nil; r = r.NextContainer {
		if r.Container() == key && (ifName == "" || r.IfName() == ifName) {
			out = append(out, r.Lease())
		}
	}
	for _, r := range x.core.state.Leases.Second.Containers[key] {
		if ifName == "" || r.Other().IfName == ifName {
			out = append(out, r.Lease().Turned())
		}
	}
	return sorted(out)
}

// ByAttachment returns the addresses that a pod (by UID, and by its name if the holder has one) or an owner holds on an
// interface, on all of them when IfName is empty, seen from its attachments. The holder's other fields do not count. A
// holder without pod UID and owner has none.
func (x *Leases) ByAttachment(h lease.Holder) []lease.Lease {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	var out []lease.Lease
	for a := range x.core.state.Leases.Attached(h) {
		out = append(out, a.Lease())
	}
	return sorted(out)
}

// SomeInUse returns up to n of the addresses that a holder, as ByAttachment looks for it, has in use, in no order. It
// reports whether these are all. A holder of thousands, as of objects that somebody wrote by hand, takes no longer.
func (x *Leases) SomeInUse(h lease.Holder, n int) (some []lease.Lease, all bool) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	for a := range x.core.state.Leases.Attached(h) {
		if a.State != lease.Active {
			continue
		}
		if len(some) == n {
			return some, false
		}
		some = append(some, a.Lease())
	}
	return some, true
}

// HasOfClaim reports whether a holder, as ByAttachment looks for it, has an address of a claim in use.
func (x *Leases) HasOfClaim(h lease.Holder, claim string) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	for a := range x.core.state.Leases.Attached(h) {
		if a.State == lease.Active && a.Claim() == claim {
			return true
		}
	}
	return false
}

// ByHost returns the addresses in use or reserved on a host, seen from there.
func (x *Leases) ByHost(host netip.Addr) []lease.Lease {
	x.core.mu.RLock()
	out := leases(x.core.state.Leases.ByHost[host])
	x.core.mu.RUnlock()
	for i, l := range out {
		out[i], _ = l.From(func(l lease.Lease) bool { return l.Host == host })
	}
	return sorted(out)
}

// Contested returns the addresses with a report that somebody else answers for them, however old it is.
func (x *Leases) Contested() ipam.Contested {
	x.core.mu.RLock()
	out := leases(x.core.state.Leases.Contested)
	x.core.mu.RUnlock()
	return sorted(out)
}

// ByPool returns the addresses whose object names a pool.
func (x *Leases) ByPool(name string) []lease.Lease {
	x.core.mu.RLock()
	var out []lease.Lease
	if m := x.core.state.Members.ByPool[name]; m != nil {
		out = leases(m.Records)
	}
	x.core.mu.RUnlock()
	return sorted(out)
}

// ByPoolIn returns the leases of some addresses that name a pool, in order. It looks at those addresses, or at the
// pool's leases where these are fewer.
func (x *Leases) ByPoolIn(name string, in *netipx.IPSet) (out []lease.Lease) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	m := x.core.state.Members.ByPool[name]
	if m == nil {
		return nil
	}
	if ipaddr.SizeOfSet(in) < uint64(len(m.Records)) {
		for a := range ipaddr.All(in) {
			if r := x.core.state.Leases.Record(a); r != nil && r.Params.Value().Pool == name {
				out = append(out, r.Lease())
			}
		}
		return out
	}
	for r := range m.Records {
		if in.Contains(r.Addr) {
			out = append(out, r.Lease())
		}
	}
	return sorted(out)
}

func leases(records map[*ledger.Record]struct{}) []lease.Lease {
	out := make([]lease.Lease, 0, len(records))
	for r := range records {
		out = append(out, r.Lease())
	}
	return out
}

func sorted(ls []lease.Lease) []lease.Lease {
	slices.SortFunc(ls, func(a, b lease.Lease) int { return a.Addr.Compare(b.Addr) })
	return ls
}

// Find returns the addresses that have an object and match, in order.
func (x *Leases) Find(match func(lease.Lease) bool) []lease.Lease {
	var out []lease.Lease
	x.Each(func(l lease.Lease) {
		if match(l) {
			out = append(out, l)
		}
	})
	return sorted(out)
}

// Entry is what the index had of an address at a moment. It takes a word, and its lease can be made again and again.
type Entry struct{ record *ledger.Record }

// Lease returns the lease of the entry.
func (e Entry) Lease() lease.Lease { return e.record.Lease() }

// Each calls fn with every address that has an object, in no order.
func (x *Leases) Each(fn func(lease.Lease)) {
	x.EachEntry(func(e Entry, _ lease.State) { fn(e.Lease()) })
}

// EachEntry calls fn as Each does, for those who keep some of many. It holds the index only while it takes note of the
// entries, which never change.
func (x *Leases) EachEntry(fn func(Entry, lease.State)) {
	x.core.mu.RLock()
	records := make([]*ledger.Record, 0, x.core.state.Leases.ByAddr.Size)
	for r := range x.core.state.Leases.ByAddr.All() {
		records = append(records, r)
	}
	x.core.mu.RUnlock()
	for _, r := range records {
		fn(Entry{r}, r.State)
	}
}

// Missing returns the lease of an address as it was when its object went, or went back; ok is false when it is not
// missing.
func (x *Leases) Missing(a netip.Addr) (l lease.Lease, ok bool) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	if _, behind := x.core.state.Missing.Behind[a]; behind {
		return x.core.state.Leases.Record(a).Lease(), true
	}
	r, ok := x.core.state.Missing.Gone[a]
	if !ok {
		return lease.Lease{Addr: a}, false
	}
	return r.Lease(), true
}

// MissingOf returns an address that an attachment had when its object went; ok is false when there is none.
func (x *Leases) MissingOf(h lease.Holder) (l lease.Lease, ok bool) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	held := func(l lease.Lease) bool { return l.IsHeldBy(h) }
	for _, r := range x.core.state.Missing.Gone {
		if l, ok := r.Lease().From(held); ok {
			return l, true
		}
	}
	for a := range x.core.state.Missing.Behind {
		if l, ok := x.core.state.Leases.Record(a).Lease().From(held); ok {
			return l, true
		}
	}
	return lease.Lease{}, false
}

// CountMissing returns how many addresses are missing.
func (x *Leases) CountMissing() int {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return len(x.core.state.Missing.Gone) + len(x.core.state.Missing.Behind)
}

// PodsOn returns how many pods hold addresses on one host, which may have several addresses itself. Its cost is that of
// the addresses that are held there.
func (x *Leases) PodsOn(host []netip.Addr) int {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	pods := map[ledger.ID]struct{}{}
	for _, h := range host {
		for r := range x.core.state.Leases.ByHost[h] {
			if r.State != lease.Active || r.Owner() != "" {
				continue
			}
			who := r.UID()
			if who.Bytes == "" {
				who = r.Container()
			}
			if o := r.Other(); o != nil && r.Host.Value() != h {
				who = ledger.PackUUID(o.PodUID)
			}
			pods[who] = struct{}{}
		}
	}
	return len(pods)
}

// ByClaim returns the addresses of a claim: those in use and those that are kept for it.
func (x *Leases) ByClaim(claim string) []lease.Lease {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	var out []lease.Lease
	for r := range x.core.state.Claims.Claimed(claim) {
		out = append(out, r.Lease())
	}
	return sorted(out)
}

// ByKey returns the addresses of a claim that are for one pod of it, by its primary key; in use or kept.
func (x *Leases) ByKey(claim, key string) []lease.Lease {
	if claim == "" || key == "" {
		return nil
	}
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	var out []lease.Lease
	for r := range x.core.state.Leases.Keyed(claim, key) {
		out = append(out, r.Lease())
	}
	return sorted(out)
}
