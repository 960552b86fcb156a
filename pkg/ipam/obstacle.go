package ipam

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// Obstacle is a lease of another pool on an address that a group is to have.
type Obstacle struct {
	Lease lease.Lease
	// Cools is when the address, which nobody has, has cooled down; zero for one that somebody has.
	Cools time.Time
}

// String says which address it is, and who has it: "10.0.0.20 (shop/web-0 on 10.0.0.11)".
func (o Obstacle) String() string {
	who := "kept for claim " + o.Lease.Claim
	switch {
	case !o.Cools.IsZero():
		who = "cooling until " + o.Cools.Add(time.Second-1).UTC().Format(time.RFC3339)
	case o.Lease.State == lease.Active:
		who = o.Lease.Where()
	}
	return fmt.Sprintf("%s (%s)", o.Lease.Addr, who)
}

// Obstacle reports whether a lease keeps its address from being handed over to a group: somebody has it by another
// pool, with that pool's cooldown, or a claim keeps it, or it cools. What an operator set aside stays set aside in the
// group.
func (p Pool) Obstacle(l lease.Lease, cooldown time.Duration, now time.Time) (o Obstacle, is bool) {
	if l.Pool == p.Name {
		return o, false
	}
	switch o.Lease = l; {
	case l.State == lease.Active, l.IsRetained():
		return o, true
	case l.State == lease.Available:
		if ends := l.CoolsUntil(cooldown); ends.After(now) {
			o.Cools = ends
			return o, true
		}
	}
	return o, false
}

// StillCarved returns which of the addresses that were handed over to a group are its own by now. What it has given
// back, or does not serve because it does not fit, others may have handed out since; and so may a replica that learnt
// of the group late.
func (x *Leases) StillCarved(group string) *netipx.IPSet {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	p := x.core.state.pools.byName[group]
	if p == nil || p.Carved == nil || p.Block {
		return &netipx.IPSet{}
	}
	own := p.Carved
	if p.Valid() {
		own = ipaddr.Intersect(own, p.Plan.Usable)
	}
	var held []netip.Addr
	for _, q := range x.core.state.pools.kin(p) {
		if !p.Valid() && q.Plan.Usable.Overlaps(own) {
			own = ipaddr.Subtract(own, q.Plan.Usable)
		}
		if m := x.core.state.members.ByPool[q.Name]; m != nil {
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

// kin returns the parent of a group and the other groups of it, as far as they are there.
func (x *catalogue) kin(p *poolState) (all []*poolState) {
	if parent := x.roots[p.Parent]; parent != nil && parent != p {
		all = append(all, parent)
	}
	for name := range x.children[p.Parent] {
		if q := x.roots[name]; q != nil && q != p && name != p.Parent {
			all = append(all, q)
		}
	}
	return all
}

// Obstacles returns the leases that keep some addresses from being handed over to a group, in order, with those whose
// object has gone and is about to be restored; next is when the first of them that only cools has cooled down.
func (x *Leases) Obstacles(group string, open *netipx.IPSet, now time.Time) (in []Obstacle, next time.Time) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	p := x.core.state.pools.byName[group]
	if p == nil {
		return nil, next
	}
	visit := func(r *ledger.Record) {
		if r == nil || !open.Contains(r.Addr) {
			return
		}
		l := r.Lease()
		o, is := p.Obstacle(l, x.core.state.pools.cooldownOf(l.Pool), now)
		if !is {
			return
		}
		if in = append(in, o); !o.Cools.IsZero() && (next.IsZero() || o.Cools.Before(next)) {
			next = o.Cools
		}
	}
	object := func(r *ledger.Record) {
		if r != nil && x.core.state.missing.Gone[r.Addr] == nil {
			visit(r)
		}
	}
	if ipaddr.SizeOfSet(open) < uint64(x.core.state.leases.ByAddr.Size) {
		for _, r := range open.Ranges() {
			for a := r.From(); r.Contains(a); a = a.Next() {
				object(x.core.state.leases.Record(a))
			}
		}
	} else {
		for r := range x.core.state.leases.ByAddr.All() {
			object(r)
		}
	}
	for _, r := range x.core.state.missing.Gone {
		visit(r)
	}
	slices.SortFunc(in, func(a, b Obstacle) int { return a.Lease.Addr.Compare(b.Lease.Addr) })
	return in, next
}

// cooldownOf returns the cooldown of a pool; none for one that is not there.
func (x *catalogue) cooldownOf(pool string) time.Duration {
	if p := x.byName[pool]; p != nil {
		return p.Cooldown
	}
	return 0
}
