package index

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// Children names the pools that name one as their parent, in order, whether or not they serve: groups and blocks.
func (x *Pools) Children(parent string) []string {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return slices.Sorted(maps.Keys(x.core.state.Pools.Children[parent]))
}

// Relatives names the pools whose part depends on one: its parent, the other groups of that, and its own groups. Blocks
// are none: they take nothing from each other.
func (x *Pools) Relatives(name string) (names []string) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	groups := func(parent string) {
		if p := x.core.state.Pools.Roots[parent]; p != nil && p.Split != nil || p == nil && parent != name {
			return
		}
		for c := range x.core.state.Pools.Children[parent] {
			if c != name {
				names = append(names, c)
			}
		}
	}
	if p := x.core.state.Pools.Roots[name]; p != nil && p.Parent != "" {
		groups(p.Parent)
		names = append(names, p.Parent)
	}
	groups(name)
	return names
}

// StillCarved returns which of the addresses that were handed over to a group are its own by now. What it has given
// back, or does not serve because it does not fit, others may have allocated since; and so may a replica that learnt of
// the group late.
func (x *Leases) StillCarved(group string) *netipx.IPSet {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	p := x.core.state.Pools.ByName[group]
	if p == nil || p.Carved == nil || p.Block {
		return &netipx.IPSet{}
	}
	own := p.Carved
	if p.Valid() {
		own = ipaddr.Intersect(own, p.Plan.Usable)
	}
	var held []netip.Addr
	for _, q := range x.core.state.Pools.Kin(p) {
		if !p.Valid() && q.Plan.Usable.Overlaps(own) {
			own = ipaddr.Subtract(own, q.Plan.Usable)
		}
		if m := x.core.state.Members.ByPool[q.Name]; m != nil {
			for r := range m.Draining {
				if own.Contains(r.Addr) && (r.State == lease.Active || r.Claim() != "") {
					held = append(held, r.Addr)
				}
			}
		}
	}
	if len(held) > 0 {
		own = ipaddr.Subtract(own, ipaddr.SetOfAddrs(held...))
	}
	return own
}

// Obstacles returns the leases that keep some addresses from being handed over to a group, in order, with those whose
// object has gone and is about to be restored; next is when the first of them that only cools has cooled down.
func (x *Leases) Obstacles(group string, open *netipx.IPSet, now time.Time) (in []ipam.Obstacle, next time.Time) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	p := x.core.state.Pools.ByName[group]
	if p == nil {
		return nil, next
	}
	visit := func(r *ledger.Record) {
		if r == nil || !open.Contains(r.Addr) {
			return
		}
		l := r.Lease()
		o, is := p.Obstacle(l, x.core.state.Pools.CooldownOf(l.Pool), now)
		if !is {
			return
		}
		if in = append(in, o); !o.Cools.IsZero() && (next.IsZero() || o.Cools.Before(next)) {
			next = o.Cools
		}
	}
	object := func(r *ledger.Record) {
		if r != nil && x.core.state.Missing.Gone[r.Addr] == nil {
			visit(r)
		}
	}
	if ipaddr.SizeOfSet(open) < uint64(x.core.state.Leases.ByAddr.Size) {
		for _, r := range open.Ranges() {
			for a := r.From(); r.Contains(a); a = a.Next() {
				object(x.core.state.Leases.Record(a))
			}
		}
	} else {
		for r := range x.core.state.Leases.ByAddr.All() {
			object(r)
		}
	}
	for _, r := range x.core.state.Missing.Gone {
		visit(r)
	}
	slices.SortFunc(in, func(a, b ipam.Obstacle) int { return a.Lease.Addr.Compare(b.Lease.Addr) })
	return in, next
}
