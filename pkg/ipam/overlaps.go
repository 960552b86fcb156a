package ipam

import (
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

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
		if r.state != lease.Available && set.Contains(r.addr) {
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
