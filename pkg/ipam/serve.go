package ipam

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// rebuild computes which addresses pools serve and which of them are free. All pools between which
// addresses move are rebuilt together: only then is every address in one place.
func (x *state) rebuild(pools ...*poolState) {
	for _, p := range pools {
		p.assign()
		x.pools.rebuilds++
		p.revision = x.pools.rebuilds
	}
	x.pools.joinSegments(pools)
	for _, p := range pools {
		x.refreshPool(p)
		if p.split != nil {
			p.resplit()
			x.findHeld(p)
		}
	}
}

// refreshPool fills the new free set of a pool, from whichever is less: its addresses, or those that
// can be occupied.
func (x *state) refreshPool(p *poolState) {
	if p.set.Len() <= uint64(x.leases.ByAddr.Size) {
		for i := range p.set.Len() {
			x.refresh(p.address(i))
		}
		return
	}
	for a := range x.perhapsTaken() {
		x.refresh(a)
	}
}

// refresh brings the free set of the pool that serves an address up to date. The last address of a
// full /64 has no number and is never handed out, nor is one that is withheld from a group.
func (x *state) refresh(a netip.Addr) {
	if p, i, ok := x.pools.segmentOf(a); ok && i < p.set.Len() {
		kept := x.occupied(a)
		p.set.Mark(i, x.refreshCooldown(p, a, i, kept) || kept)
	}
}

// occupied reports whether an address cannot be handed out at present, its cooldown apart.
func (x *state) occupied(a netip.Addr) bool {
	if r := x.leases.Record(a); r != nil &&
		(r.State != lease.Available || r.Has(ledger.FlagDeleting) && !failpoint.Broken("deleting")) {
		return true
	}
	if _, held := x.assumed.ByAddr[a]; held {
		return true
	}
	if _, lost := x.missing.Gone[a]; lost {
		return true
	}
	_, node := x.nodes.nodeIP[a]
	return node
}
