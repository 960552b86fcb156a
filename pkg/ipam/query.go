package ipam

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Get is the entry of an address; ok is false when it has no object.
func (x *Index) Get(a netip.Addr) (Lease, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	r := x.record(a)
	if r == nil {
		return Lease{Addr: a, Epoch: x.epoch}, false
	}
	return r.lease(), true
}

// Len is how many addresses have an object.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.byAddr.size
}

// ByContainer are the addresses that a container holds; an empty ifName means all its interfaces.
func (x *Index) ByContainer(id, ifName string) []Lease {
	key := compactHex(id)
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []Lease
	for r := x.byContainer.first(x.hashContainer(key)); r != nil; r = r.nextContainer {
		if r.container() == key && (ifName == "" || r.ifName.Value() == ifName) {
			out = append(out, r.lease())
		}
	}
	return sorted(out)
}

// ByAttachment are the addresses that a pod (by UID) or an owner holds on an interface, on all of them when
// IfName is empty. The holder's other fields do not count. A holder without pod UID and owner has none.
func (x *Index) ByAttachment(h Holder) []Lease {
	if h.Owner == "" && h.PodUID == "" {
		return nil
	}
	uid := compactUUID(h.PodUID)
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []Lease
	for r := x.byAttachment.first(x.hashAttachment(h.Owner, uid)); r != nil; r = r.nextAttachment {
		if r.owner() == h.Owner && (h.Owner != "" || r.uid() == uid) && (h.IfName == "" || r.ifName.Value() == h.IfName) {
			out = append(out, r.lease())
		}
	}
	return sorted(out)
}

// SomeInUse returns up to n of the addresses that a holder, as ByAttachment looks for it, has in use, in no order. It
// reports whether these are all. A holder of thousands, as of objects that somebody wrote by hand, takes no longer.
func (x *Index) SomeInUse(h Holder, n int) (some []Lease, all bool) {
	if h.Owner == "" && h.PodUID == "" {
		return nil, true
	}
	uid := compactUUID(h.PodUID)
	x.mu.RLock()
	defer x.mu.RUnlock()
	for r := x.byAttachment.first(x.hashAttachment(h.Owner, uid)); r != nil; r = r.nextAttachment {
		if r.state != Active || r.owner() != h.Owner || h.Owner == "" && r.uid() != uid || h.IfName != "" && r.ifName.Value() != h.IfName {
			continue
		}
		if len(some) == n {
			return some, false
		}
		some = append(some, r.lease())
	}
	return some, true
}

// HasOfClaim reports whether a holder, as ByAttachment looks for it, has an address of a claim in use.
func (x *Index) HasOfClaim(h Holder, claim string) bool {
	if h.Owner == "" && h.PodUID == "" {
		return false
	}
	uid := compactUUID(h.PodUID)
	x.mu.RLock()
	defer x.mu.RUnlock()
	for r := x.byAttachment.first(x.hashAttachment(h.Owner, uid)); r != nil; r = r.nextAttachment {
		if r.state == Active && r.extra != nil && r.extra.retention.Claim == claim && r.owner() == h.Owner && (h.Owner != "" || r.uid() == uid) &&
			(h.IfName == "" || r.ifName.Value() == h.IfName) {
			return true
		}
	}
	return false
}

// ByHost are the addresses in use or reserved on a host.
func (x *Index) ByHost(host netip.Addr) []Lease {
	x.mu.RLock()
	out := leases(x.byHost[host])
	x.mu.RUnlock()
	return sorted(out)
}

// ByPool are the addresses whose object names a pool.
func (x *Index) ByPool(name string) []Lease {
	x.mu.RLock()
	var out []Lease
	if m := x.byPool[name]; m != nil {
		out = leases(m.records)
	}
	x.mu.RUnlock()
	return sorted(out)
}

func leases(records map[*record]struct{}) []Lease {
	out := make([]Lease, 0, len(records))
	for r := range records {
		out = append(out, r.lease())
	}
	return out
}

func sorted(ls []Lease) []Lease {
	slices.SortFunc(ls, func(a, b Lease) int { return a.Addr.Compare(b.Addr) })
	return ls
}

// PoolCounts are the counts of one pool.
type PoolCounts struct {
	// Capacity is how many addresses the pool serves, or has leases on although it serves them no more: those that another
	// pool serves, and those that are no longer in its plan. It is the sum of Free, Cooling, Active, Reserved, and what is
	// taken of what it serves without being its own. It saturates at 2^64-1, like Served and Free.
	Capacity uint64
	// Served is how many addresses the pool serves.
	Served uint64
	Free   uint64
	// Cooling is how many would be free but for the cooldown; NextFree is when the first of them is, zero
	// when there are none.
	Cooling  uint64
	NextFree time.Time
	// Objects, Active and Reserved count the objects that name the pool.
	Objects, Active, Reserved int
}

// Counts counts a pool as it is at a time, at no cost.
func (x *Index) Counts(name string, now time.Time) PoolCounts {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = now.UnixNano()
	return x.countsOf(name)
}

func (x *Index) countsOf(name string) (c PoolCounts) {
	if p := x.pools[name]; p != nil {
		x.expireCooldowns(p)
		c.Served, c.Free = p.set.n, p.set.free()
		c.Cooling, c.NextFree = p.cooldowns.set.taken, x.nextCooled(p)
	}
	if m := x.byPool[name]; m != nil {
		c.Objects, c.Active, c.Reserved = len(m.records), m.active, m.reserved
	}
	c.Capacity = ipaddr.AddSaturated(c.Served, uint64(x.heldElsewhere(name)))
	return c
}

// heldElsewhere counts the held addresses of a pool that it does not serve. There is none to look at unless it loses addresses to
// another, and all that it has only where it loses some to several: an address may be among those of each.
func (x *Index) heldElsewhere(name string) (n int) {
	p, m := x.pools[name], x.byPool[name]
	if m == nil {
		return 0
	}
	if p == nil || !p.Valid() {
		return m.active + m.reserved
	}
	lost := 0
	for _, o := range p.overlaps {
		if o.winner == p {
			continue
		}
		lost++
		n += o.heldBy(p)
	}
	if lost < 2 || n == 0 {
		return n + len(m.draining)
	}
	n = 0
	for r := range m.records {
		if r.state != Available {
			if by, _, ok := x.serving(r.addr); !ok || by != p {
				n++
			}
		}
	}
	return n
}

// Draining counts, per host, the held addresses of a pool that are no longer in its plan.
func (x *Index) Draining(name string) map[netip.Addr]int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	m := x.byPool[name]
	if m == nil || len(m.draining) == 0 {
		return nil
	}
	by := map[netip.Addr]int{}
	for r := range m.draining {
		by[r.host.Value()]++
	}
	return by
}

// Pools are all pools, by name.
func (x *Index) Pools() []Pool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := make([]Pool, 0, len(x.pools))
	for _, p := range x.pools {
		out = append(out, p.Pool)
	}
	slices.SortFunc(out, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Pool is one pool by name.
func (x *Index) Pool(name string) (Pool, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if p, ok := x.pools[name]; ok {
		return p.Pool, true
	}
	return Pool{}, false
}

// PoolOf names the pool that serves an address.
func (x *Index) PoolOf(a netip.Addr) (string, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p, _, ok := x.serving(a)
	if !ok {
		return "", false
	}
	return p.Name, true
}

// Find are the addresses that have an object and match, in order.
func (x *Index) Find(match func(Lease) bool) []Lease {
	var out []Lease
	x.Each(func(l Lease) {
		if match(l) {
			out = append(out, l)
		}
	})
	return sorted(out)
}

// Entry is what the index had of an address at a moment. It takes a word, and its lease can be made again and again.
type Entry struct{ record *record }

// Lease is the whole of it.
func (e Entry) Lease() Lease { return e.record.lease() }

// Each calls fn with every address that has an object, in no order.
func (x *Index) Each(fn func(Lease)) {
	x.EachEntry(func(e Entry, _ State) { fn(e.Lease()) })
}

// EachEntry is Each for those who keep some of many. It holds the index only while it takes note of the entries, which
// never change.
func (x *Index) EachEntry(fn func(Entry, State)) {
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
