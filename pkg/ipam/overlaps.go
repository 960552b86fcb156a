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
	if len(p.usable)+len(before) == 0 {
		return nil // as of blocks that come before their parent, of which there may be thousands
	}
	for _, q := range x.pools.roots {
		if q == p {
			continue
		}
		delete(q.overlaps, p.Name)
		if !related(p.Pool, q.Pool) && ipaddr.Meet(p.usable, q.usable) {
			shared := ipaddr.Intersect(p.Plan.Usable, q.Plan.Usable)
			o := &overlap{pools: [2]*poolState{p, q}, shared: shared}
			o.held[0], o.held[1] = x.heldIn(p, shared), x.heldIn(q, shared)
			o.winner = o.decide()
			p.overlaps[q.Name], q.overlaps[p.Name] = o, o
		}
		if before[q.Name] != nil || q.overlaps[p.Name] != nil {
			changed = append(changed, q)
		}
	}
	return changed
}

// related reports whether two pools are a parent and its child, or children of one parent: these never share addresses.
func related(a, b Pool) bool {
	return a.Parent == b.Name || b.Parent == a.Name || a.Parent != "" && a.Parent == b.Parent
}

// heldIn counts the addresses of a set that the leases of a pool and of its blocks hold.
func (x *state) heldIn(p *poolState, set *netipx.IPSet) (n int) {
	for m := range x.membersOf(p) {
		for r := range m.Records {
			if r.State != lease.Available && set.Contains(r.Addr) {
				n++
			}
		}
	}
	return n
}

// countOverlaps keeps the counts of held shared addresses.
func (x *state) countOverlaps(pool string, a netip.Addr, by int) {
	p, ok := x.pools.byName[pool]
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
