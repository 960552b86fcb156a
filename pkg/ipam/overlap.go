package ipam

import (
	"cmp"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// overlap is the addresses that two pools share; one of the two serves them all.
type overlap struct {
	pools  [2]*poolState
	shared *netipx.IPSet
	// held counts the shared addresses that each pool's leases hold.
	held   [2]int
	winner *poolState
}

// decide says which pool serves the shared addresses.
func (o *overlap) decide() *poolState {
	a, b := o.pools[0], o.pools[1]
	if Prevails(a.Pool, b.Pool, o.held[0] > 0, o.held[1] > 0) {
		return a
	}
	return b
}

// heldBy counts the shared addresses that the leases of one of the two pools hold.
func (o *overlap) heldBy(p *poolState) int {
	if o.pools[1] == p {
		return o.held[1]
	}
	return o.held[0]
}

// Prevails says whether a, and not b, serves the addresses that both have: one that is not being deleted
// does, then the one that holds leases on them, then the older, then by name.
func Prevails(a, b Pool, aHolds, bHolds bool) bool {
	return cmp.Or(
		compareBool(a.Terminating, b.Terminating),
		compareBool(bHolds, aHolds),
		a.Created.Compare(b.Created),
		cmp.Compare(a.Name, b.Name)) <= 0
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// findOverlaps looks for the pools that share addresses with p. It returns those for which something
// changed; the caller rebuilds them together with p.
func (x *state) findOverlaps(p *poolState) (changed []*poolState) {
	before := p.overlaps
	p.overlaps = map[string]*overlap{}
	for _, q := range x.pools {
		if q == p {
			continue
		}
		delete(q.overlaps, p.Name)
		if ipaddr.Meet(p.usable, q.usable) {
			shared := ipaddr.Intersect(p.Plan.Usable, q.Plan.Usable)
			o := &overlap{pools: [2]*poolState{p, q}, shared: shared}
			o.held[0], o.held[1] = x.heldIn(p.Name, shared), x.heldIn(q.Name, shared)
			o.winner = o.decide()
			p.overlaps[q.Name], q.overlaps[p.Name] = o, o
		}
		if before[q.Name] != nil || q.overlaps[p.Name] != nil {
			changed = append(changed, q)
		}
	}
	return changed
}

func (x *state) heldIn(pool string, set *netipx.IPSet) (n int) {
	m := x.byPool[pool]
	if m == nil {
		return 0
	}
	for r := range m.records {
		if r.state != Available && set.Contains(r.addr) {
			n++
		}
	}
	return n
}

// countOverlaps keeps the counts of held shared addresses.
func (x *state) countOverlaps(pool string, a netip.Addr, by int) {
	p, ok := x.pools[pool]
	if !ok {
		return
	}
	for _, o := range p.overlaps {
		if o.shared.Contains(a) {
			side := 0
			if o.pools[1] == p {
				side = 1
			}
			o.held[side] += by
			x.staleOverlaps = append(x.staleOverlaps, o)
		}
	}
}

// resolveOverlaps decides anew where leases on shared addresses came or went.
func (x *state) resolveOverlaps() {
	if len(x.staleOverlaps) == 0 {
		return
	}
	var changed []*poolState
	for _, o := range x.staleOverlaps {
		winner := o.decide()
		if winner == o.winner {
			continue
		}
		o.winner = winner
		for _, p := range o.pools {
			if !slices.Contains(changed, p) {
				changed = append(changed, p)
			}
		}
	}
	x.staleOverlaps = x.staleOverlaps[:0]
	if len(changed) > 0 {
		x.rebuild(changed...)
	}
}

// Overlap is what a pool shares with another.
type Overlap struct {
	Other  string
	Shared *netipx.IPSet
	// Served: this pool, not the other, hands out the shared addresses.
	Served bool
}

// Overlaps are the pools that share addresses with one, by name.
func (x *poolView) Overlaps(name string) []Overlap {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p, ok := x.pools[name]
	if !ok {
		return nil
	}
	var out []Overlap
	for other, o := range p.overlaps {
		out = append(out, Overlap{Other: other, Shared: o.shared, Served: o.winner == p})
	}
	slices.SortFunc(out, func(a, b Overlap) int { return cmp.Compare(a.Other, b.Other) })
	return out
}
