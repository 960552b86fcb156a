package memory

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// Busy reports whether an address that is reserved is on its way to somebody, missing, or a node's.
func (x *State) Busy(r *ledger.Record) bool {
	_, held := x.Assumed.ByAddr[r.Addr]
	_, lost := x.Missing.Gone[r.Addr]
	return held || lost || x.Nodes.Has(r.Addr)
}

// rebuild computes which addresses pools serve and which of them are free. All pools between which
// addresses move are rebuilt together: only then is every address in one place.
func (x *State) rebuild(pools ...*PoolState) {
	for _, p := range pools {
		p.assign()
		x.Pools.rebuilds++
		p.Revision = x.Pools.rebuilds
	}
	x.Pools.joinSegments(pools)
	for _, p := range pools {
		x.refreshPool(p)
		if p.Split != nil {
			p.resplit()
			x.findHeld(p)
		}
	}
}

// refreshPool fills the new free set of a pool, from whichever is less: its addresses, or those that
// can be occupied.
func (x *State) refreshPool(p *PoolState) {
	if p.Set.Len() <= uint64(x.Leases.ByAddr.Size) {
		for i := range p.Set.Len() {
			x.Refresh(p.address(i))
		}
		return
	}
	for a := range x.PerhapsTaken() {
		x.Refresh(a)
	}
}

// Refresh brings the free set of the pool that serves an address up to date. The last address of a full /64 has no
// number and is never allocated, nor is one that is withheld from a group.
func (x *State) Refresh(a netip.Addr) {
	if p, i, ok := x.Pools.SegmentOf(a); ok && i < p.Set.Len() {
		kept := x.occupied(a)
		p.Set.Mark(i, x.refreshCooldown(p, a, i, kept) || kept)
	}
}

// occupied reports whether an address cannot be allocated at present, its cooldown apart. A free record with the
// finalizer of an address in use lost its status: a backup that has no status may have been restored.
func (x *State) occupied(a netip.Addr) bool {
	if r := x.Leases.Record(a); r != nil &&
		(r.State != lease.Available || r.Has(ledger.FlagFinalizer) && !failpoint.Broken("emptied") ||
			r.Has(ledger.FlagDeleting) && !failpoint.Broken("deleting")) {
		return true
	}
	if _, held := x.Assumed.ByAddr[a]; held {
		return true
	}
	if _, lost := x.Missing.Gone[a]; lost {
		return true
	}
	return x.Nodes.Has(a)
}
