package memory

import (
	"cmp"
	"container/heap"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// CoolsUntil returns when the cooldown of an address of the pool ends, in Unix nanoseconds; 0 when it has none.
func (p *PoolState) CoolsUntil(r *ledger.Record) int64 {
	if r == nil || p.Cooldown <= 0 || r.State != lease.Available || r.Updated == 0 {
		return 0
	}
	return ledger.Nanos(lease.Lease{Updated: ledger.FromNanos(r.Updated), History: r.History()}.CoolsUntil(p.Cooldown))
}

// refreshCooldown records whether an address cools that nothing else keeps, and reports it.
func (x *State) refreshCooldown(p *PoolState, a netip.Addr, number uint64, kept bool) bool {
	var ends int64
	if !kept && p.Cooldown > 0 {
		ends = p.CoolsUntil(x.Leases.Record(a))
	}
	rests := ends > x.Now
	p.Cooldowns.Set.Mark(number, rests)
	if rests {
		heap.Push(&p.Cooldowns.queue, cooldown{ends, number})
		x.compactCooldowns(p)
	}
	return rests
}

// compactCooldowns throws out what is no longer so when that is the greater part of a pool's queue.
func (x *State) compactCooldowns(p *PoolState) {
	q := p.Cooldowns.queue
	if uint64(len(q)) <= 2*p.Cooldowns.Set.Used()+64 {
		return
	}
	q = slices.DeleteFunc(q, func(r cooldown) bool { return !x.stillCools(p, r) })
	slices.SortFunc(q, func(a, b cooldown) int {
		return cmp.Or(cmp.Compare(a.ends, b.ends), cmp.Compare(a.number, b.number))
	})
	p.Cooldowns.queue = slices.Compact(q)
}

// stillCools reports whether an address cools, and exactly that long.
func (x *State) stillCools(p *PoolState, r cooldown) bool {
	return p.Cooldowns.Set.IsTaken(r.number) && p.CoolsUntil(x.Leases.Record(p.address(r.number))) == r.ends
}

// ExpireCooldowns ends the cooldowns of a pool that are over. Functions that read the pool's free addresses call it
// first; there is no timer.
func (x *State) ExpireCooldowns(p *PoolState) {
	p = p.Home()
	for q := &p.Cooldowns.queue; len(*q) > 0 && (*q)[0].ends <= x.Now; {
		x.Refresh(p.address(heap.Pop(q).(cooldown).number))
	}
}

// NextCooled returns when the first cooldown of a pool ends; zero when no address cools.
func (x *State) NextCooled(p *PoolState) time.Time {
	if p.Whole != nil {
		return x.nextCooledIn(p)
	}
	for q := &p.Cooldowns.queue; len(*q) > 0; heap.Pop(q) {
		if x.stillCools(p, (*q)[0]) {
			return ledger.FromNanos((*q)[0].ends)
		}
	}
	return time.Time{}
}

// nextCooledIn returns when the first cooldown of a block ends; zero when none of its addresses cools. It looks at all
// that cool in the parent, or at all numbers of the block where those are fewer.
func (x *State) nextCooledIn(b *PoolState) time.Time {
	var first int64
	see := func(ends int64) {
		if ends > x.Now && (first == 0 || ends < first) {
			first = ends
		}
	}
	home := b.Whole
	if b.N <= uint64(len(home.Cooldowns.queue)) {
		for i := b.From; i < b.From+b.N; i++ {
			if home.Cooldowns.Set.IsTaken(i) {
				see(home.CoolsUntil(x.Leases.Record(home.address(i))))
			}
		}
		return ledger.FromNanos(first)
	}
	for _, c := range home.Cooldowns.queue {
		if c.number-b.From < b.N && x.stillCools(home, c) {
			see(c.ends)
		}
	}
	return ledger.FromNanos(first)
}

// Until returns the time until then.
func (x *State) Until(then time.Time) time.Duration { return then.Sub(ledger.FromNanos(x.Now)) }
