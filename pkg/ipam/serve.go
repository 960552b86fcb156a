package ipam

import (
	"cmp"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// segment is a run of addresses that one pool serves; base is the number of its first address in the
// pool's free set.
type segment struct {
	netipx.IPRange
	base uint64
	pool *poolState
}

// rebuild computes which addresses pools serve and which of them are free. All pools between which
// addresses move are rebuilt together: only then is every address in one place.
func (x *state) rebuild(pools ...*poolState) {
	for _, p := range pools {
		p.assign()
		x.rebuilds++
		p.revision = x.rebuilds
	}
	x.joinSegments(pools)
	for _, p := range pools {
		x.refreshPool(p)
	}
}

// ServedRevision is another number whenever it may be other addresses that a pool serves; 0 for one that is not there.
func (x *poolView) ServedRevision(name string) uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if p := x.pools[name]; p != nil {
		return p.revision
	}
	return 0
}

// assign gives a pool all its addresses but those that it loses to others.
func (p *poolState) assign() {
	served := p.Plan.Usable
	for _, o := range p.overlaps {
		if o.winner != p {
			served = ipaddr.Subtract(served, o.shared)
		}
	}
	p.segments = nil
	var n uint64
	for _, r := range served.Ranges() {
		p.segments = append(p.segments, segment{IPRange: r, base: n, pool: p})
		n = ipaddr.AddSaturated(n, ipaddr.Size(r))
	}
	p.set, p.cooldowns = newFreeSet(n), newCooldowns(n)
}

// refreshPool fills the new free set of a pool, from whichever is less: its addresses, or those that
// can be occupied.
func (x *state) refreshPool(p *poolState) {
	if p.set.n <= uint64(x.byAddr.size) {
		for i := range p.set.n {
			x.refresh(p.address(i))
		}
		return
	}
	for r := range x.byAddr.all() {
		x.refresh(r.addr)
	}
	for a := range x.assumed {
		x.refresh(a)
	}
	for a := range x.missing {
		x.refresh(a)
	}
	for a := range x.nodeIP {
		x.refresh(a)
	}
}

// joinSegments puts the segments of changed pools in the place of their old ones, in address order.
func (x *catalogue) joinSegments(changed []*poolState) {
	kept := slices.DeleteFunc(x.segments, func(s segment) bool { return slices.Contains(changed, s.pool) })
	var fresh []segment
	for _, p := range changed {
		fresh = append(fresh, p.segments...)
	}
	byAddr := func(a, b segment) int { return a.From().Compare(b.From()) }
	slices.SortFunc(fresh, byAddr)
	joined := make([]segment, 0, len(kept)+len(fresh))
	for len(kept) > 0 && len(fresh) > 0 {
		from := &kept
		if byAddr(fresh[0], kept[0]) < 0 {
			from = &fresh
		}
		joined, *from = append(joined, (*from)[0]), (*from)[1:]
	}
	x.segments = append(append(joined, kept...), fresh...)
}

// serving finds the pool that serves an address, and the address's number in its free set.
func (x *catalogue) serving(a netip.Addr) (*poolState, uint64, bool) {
	at, exact := slices.BinarySearchFunc(x.segments, a, func(s segment, a netip.Addr) int { return s.From().Compare(a) })
	if !exact {
		at--
	}
	if at < 0 || x.segments[at].To().Less(a) {
		return nil, 0, false
	}
	s := x.segments[at]
	return s.pool, s.base + ipaddr.Distance(s.From(), a), true
}

// address is the i-th address that the pool serves.
func (p *poolState) address(i uint64) netip.Addr {
	at, exact := slices.BinarySearchFunc(p.segments, i, func(s segment, i uint64) int { return cmp.Compare(s.base, i) })
	if !exact {
		at--
	}
	return ipaddr.Advance(p.segments[at].From(), i-p.segments[at].base)
}

// refresh brings the free set of the pool that serves an address up to date. The last address of a
// full /64 has no number and is never handed out.
func (x *state) refresh(a netip.Addr) {
	if p, i, ok := x.serving(a); ok && i < p.set.n {
		kept := x.occupied(a)
		p.set.set(i, x.refreshCooldown(p, a, i, kept) || kept)
	}
}

// occupied says whether an address cannot be handed out at present, its cooldown apart.
func (x *state) occupied(a netip.Addr) bool {
	if r := x.record(a); r != nil && (r.state != Available || r.has(flagDeleting) && !failpoint.Broken("deleting")) {
		return true
	}
	if _, held := x.assumed[a]; held {
		return true
	}
	if _, lost := x.missing[a]; lost {
		return true
	}
	_, node := x.nodeIP[a]
	return node
}
