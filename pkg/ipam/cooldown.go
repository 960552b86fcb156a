package ipam

import (
	"cmp"
	"container/heap"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/explain"
)

// CoolsUntil is when an address that was given up may be handed out again by a pool of the given cooldown;
// zero where nothing holds it back. An address rests from its release, whoever released it. That it was
// set aside in between neither ends the rest nor begins another; one that nobody ever held has none.
func (l Lease) CoolsUntil(cooldown time.Duration) time.Time {
	if cooldown <= 0 || failpoint.Broken("cooldown") || l.State != Available || l.Updated.IsZero() {
		return time.Time{}
	}
	since := givenUp(l.Updated, l.History)
	if since.IsZero() {
		return since
	}
	return since.Add(cooldown)
}

// givenUp is when somebody last gave up an address that is Available; zero when nobody ever held it.
func givenUp(updated time.Time, h History) time.Time {
	entries := h.Entries()
	at := slices.IndexFunc(entries, func(p Past) bool { return p.Holder != "" })
	switch {
	case at > 0: // changed by hand since; the history counts in whole seconds, rounded down
		return entries[at].Until.Add(time.Second)
	case at < 0 && len(entries) > 0 && len(entries) < MaxHistory: // a whole history, and nobody in it
		return time.Time{}
	default:
		return updated
	}
}

// lastHolder is who had an address last, as far as its history goes.
func (h History) lastHolder() string {
	for _, p := range h.Entries() {
		if p.Holder != "" {
			return p.Holder
		}
	}
	return ""
}

// cooldowns are the addresses of a pool that nothing keeps but the cooldown.
type cooldowns struct {
	// set has them as taken.
	set *freeSet
	// queue says when their cooldowns end. It has every address of the set, and others that were in it.
	queue cooldownQueue
}

// cooldown is when that of an address ends, in Unix nanoseconds, and the address's number in the pool.
type cooldown struct {
	ends   int64
	number uint64
}

func newCooldowns(n uint64) cooldowns { return cooldowns{set: newFreeSet(n)} }

// coolsUntil is when the cooldown of an address of the pool ends, in Unix nanoseconds; 0 when it has none.
func (p *poolState) coolsUntil(r *record) int64 {
	if r == nil || p.Cooldown <= 0 || r.state != Available || r.updated == 0 {
		return 0
	}
	return nanos(Lease{Updated: fromNanos(r.updated), History: r.history()}.CoolsUntil(p.Cooldown))
}

// refreshCooldown takes note whether an address that nothing else keeps cools, and reports it.
func (x *state) refreshCooldown(p *poolState, a netip.Addr, number uint64, kept bool) bool {
	var ends int64
	if !kept && p.Cooldown > 0 {
		ends = p.coolsUntil(x.record(a))
	}
	rests := ends > x.now
	p.cooldowns.set.set(number, rests)
	if rests {
		heap.Push(&p.cooldowns.queue, cooldown{ends, number})
		x.compactCooldowns(p)
	}
	return rests
}

// compactCooldowns throws out what is no longer so when that is the greater part of a pool's queue.
func (x *state) compactCooldowns(p *poolState) {
	q := p.cooldowns.queue
	if uint64(len(q)) <= 2*p.cooldowns.set.taken+64 {
		return
	}
	q = slices.DeleteFunc(q, func(r cooldown) bool { return !x.stillCools(p, r) })
	slices.SortFunc(q, func(a, b cooldown) int { return cmp.Or(cmp.Compare(a.ends, b.ends), cmp.Compare(a.number, b.number)) })
	p.cooldowns.queue = slices.Compact(q)
}

// stillCools reports whether an address cools, and exactly that long.
func (x *state) stillCools(p *poolState, r cooldown) bool {
	return p.cooldowns.set.has(r.number) && p.coolsUntil(x.record(p.address(r.number))) == r.ends
}

// expireCooldowns ends those of a pool whose time has come. It is called whenever somebody looks at what the pool
// has free; there is no timer.
func (x *state) expireCooldowns(p *poolState) {
	for q := &p.cooldowns.queue; len(*q) > 0 && (*q)[0].ends <= x.now; {
		x.refresh(p.address(heap.Pop(q).(cooldown).number))
	}
}

// nextCooled is when the first cooldown of a pool ends; zero when no address cools.
func (x *state) nextCooled(p *poolState) time.Time {
	for q := &p.cooldowns.queue; len(*q) > 0; heap.Pop(q) {
		if x.stillCools(p, (*q)[0]) {
			return fromNanos((*q)[0].ends)
		}
	}
	return time.Time{}
}

// cooling says why an address that rests is not given to who asks for it by name; nil when it does not
// rest, and for the one who had it last: to everybody else the address still means them.
func (x *picker) cooling(a netip.Addr, p *poolState, who string) *Refusal {
	_, number, _ := x.serving(a)
	if !p.cooldowns.set.has(number) {
		return nil
	}
	r := x.record(a)
	last := r.history().lastHolder()
	if last != "" && last == who {
		return nil
	}
	left := x.until(fromNanos(p.coolsUntil(r)))
	return refuse(ReasonAddressCooling, explain.Facts{Kind: explain.AddressCooling, Address: a, Pool: p.Name, By: last, In: left})
}

// until returns the time until then.
func (x *state) until(then time.Time) time.Duration { return then.Sub(fromNanos(x.now)) }

// cooldownQueue has the cooldown that ends first in front.
type cooldownQueue []cooldown

// Len, Less, Swap, Push and Pop are those of a heap.
func (q cooldownQueue) Len() int           { return len(q) }
func (q cooldownQueue) Less(i, j int) bool { return q[i].ends < q[j].ends }
func (q cooldownQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push is for package heap.
func (q *cooldownQueue) Push(r any) { *q = append(*q, r.(cooldown)) }

// Pop is for package heap.
func (q *cooldownQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
