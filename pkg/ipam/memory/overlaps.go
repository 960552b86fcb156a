package memory

import (
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// overlap has the addresses that two pools share. One of the two serves all of them.
type overlap struct {
	pools  [2]*PoolState
	Shared *netipx.IPSet
	// held counts the shared addresses that each pool's leases hold.
	held   [2]int
	Winner *PoolState
}

// decide chooses which pool serves the shared addresses.
func (o *overlap) decide() *PoolState {
	a, b := o.pools[0], o.pools[1]
	if ipam.Prevails(a.Pool, b.Pool, o.held[0] > 0, o.held[1] > 0) {
		return a
	}
	return b
}

// heldBy counts the shared addresses that the leases of one of the two pools hold.
func (o *overlap) heldBy(p *PoolState) int {
	if o.pools[1] == p {
		return o.held[1]
	}
	return o.held[0]
}

// findOverlaps looks for the pools that share addresses with p. It returns those for which something
// changed; the caller rebuilds them together with p.
func (x *State) findOverlaps(p *PoolState) (changed []*PoolState) {
	before := p.Overlaps
	p.Overlaps = map[string]*overlap{}
	if len(p.UsableRanges)+len(before) == 0 {
		return nil // as of blocks that come before their parent, of which there may be thousands
	}
	for _, q := range x.Pools.Roots {
		if q == p {
			continue
		}
		delete(q.Overlaps, p.Name)
		if !related(p.Pool, q.Pool) && ipaddr.Meet(p.UsableRanges, q.UsableRanges) {
			shared := ipaddr.Intersect(p.Plan.Usable, q.Plan.Usable)
			o := &overlap{pools: [2]*PoolState{p, q}, Shared: shared}
			o.held[0], o.held[1] = x.heldIn(p, shared), x.heldIn(q, shared)
			o.Winner = o.decide()
			p.Overlaps[q.Name], q.Overlaps[p.Name] = o, o
		}
		if before[q.Name] != nil || q.Overlaps[p.Name] != nil {
			changed = append(changed, q)
		}
	}
	return changed
}

// related reports whether two pools are a parent and its child, or children of one parent: these never share addresses.
func related(a, b ipam.Pool) bool {
	return a.Parent == b.Name || b.Parent == a.Name || a.Parent != "" && a.Parent == b.Parent
}

// heldIn counts the addresses of a set that the leases of a pool and of its blocks hold.
func (x *State) heldIn(p *PoolState, set *netipx.IPSet) (n int) {
	for m := range x.MembersOf(p) {
		for r := range m.Records {
			if r.State != lease.Available && set.Contains(r.Addr) {
				n++
			}
		}
	}
	return n
}

// countOverlaps keeps the counts of held shared addresses.
func (x *State) countOverlaps(pool string, a netip.Addr, by int) {
	p, ok := x.Pools.ByName[pool]
	if !ok {
		return
	}
	for _, o := range p.Overlaps {
		if o.Shared.Contains(a) {
			side := 0
			if o.pools[1] == p {
				side = 1
			}
			o.held[side] += by
			x.staleOverlaps = append(x.staleOverlaps, o)
		}
	}
}

// resolveOverlaps decides the stale overlaps again.
func (x *State) resolveOverlaps() {
	if len(x.staleOverlaps) == 0 {
		return
	}
	var changed []*PoolState
	for _, o := range x.staleOverlaps {
		winner := o.decide()
		if winner == o.Winner {
			continue
		}
		o.Winner = winner
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
