package ipam

import (
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// PoolCounts are the counts of one pool.
type PoolCounts struct {
	// Capacity is how many addresses the pool serves, or has leases on although it serves them no more: those that
	// another pool serves, and those that are no longer in its plan. It is the sum of Free, Cooling, Active, Reserved,
	// and what is taken of what it serves without being its own. It saturates at 2^64-1, like Served and Free.
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
func (x *Pools) Counts(name string, now time.Time) PoolCounts {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.now = now.UnixNano()
	return x.core.state.countsOf(name)
}

// countsOf counts a pool.
func (x *state) countsOf(name string) (c PoolCounts) {
	if p := x.pools.byName[name]; p != nil {
		x.expireCooldowns(p)
		c.Served, c.Free = ipaddr.AddSaturated(p.n, p.later), p.free()
		c.Cooling, c.NextFree = p.cooling(), x.nextCooled(p)
	}
	all := x.tallyOf(name)
	c.Objects, c.Active, c.Reserved = all.Objects, all.Active, all.Reserved
	c.Capacity = ipaddr.AddSaturated(c.Served, uint64(x.heldElsewhere(name)))
	return c
}

// heldElsewhere counts the held addresses of a pool that it does not serve. There is none to look at unless it loses
// addresses to another, and all that it has only where it loses some to several: an address may be among those of
// each.
func (x *state) heldElsewhere(name string) (n int) {
	p, all := x.pools.byName[name], x.tallyOf(name)
	if p == nil || !p.Valid() {
		return all.Active + all.Reserved
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
		return n + all.Draining
	}
	n = 0
	for m := range x.membersOf(p) {
		for r := range m.Records {
			if r.State != lease.Available {
				if by, _, ok := x.pools.segmentOf(r.Addr); !ok || by != p {
					n++
				}
			}
		}
	}
	return n
}

// tallyOf counts the leases that name a pool, and those that name one of its blocks.
func (x *state) tallyOf(name string) (t ledger.Tally) {
	if m := x.members.ByPool[name]; m != nil {
		t.Add(m, +1)
	}
	if p := x.pools.byName[name]; p != nil && p.split != nil {
		b := p.ofBlocks
		t.Objects, t.Active, t.Reserved = t.Objects+b.Objects, t.Active+b.Active, t.Reserved+b.Reserved
		t.Retained, t.Draining = t.Retained+b.Retained, t.Draining+b.Draining
	}
	return t
}

// SetGone says how many leases of each pool are held for pods that are gone. Refusals tell it, and nothing goes by it.
func (x *Pools) SetGone(byPool map[string]int) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.gone = byPool
}

// Draining counts, per host, the held addresses of a pool that are no longer in its plan.
func (x *Pools) Draining(name string) map[netip.Addr]int {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	p, by := x.core.state.pools.byName[name], map[netip.Addr]int{}
	if p == nil || x.core.state.tallyOf(name).Draining == 0 {
		return nil
	}
	for m := range x.core.state.membersOf(p) {
		for r := range m.Draining {
			by[r.Host.Value()]++
		}
	}
	return by
}
