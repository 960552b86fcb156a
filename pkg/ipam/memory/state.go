package memory

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
	"github.com/bcsnet/bcsnet/pkg/ipam/nodes"
)

// State is all that the index knows. Its callers hold the lock of the index, for writing if a method changes anything.
//
// Each field keeps an invariant of its own, and knows no other field. The methods of State keep the invariants between
// fields. The most important one: an address is free in the set of the pool that serves it if and only if occupied
// returns false and, after ExpireCooldowns, the address does not cool. Check verifies the invariants.
type State struct {
	// Leases has at most one entry for each address, and finds it by each key that the entry has.
	Leases ledger.Leases
	// Claims has each held address of a claim in exactly one part of that claim.
	Claims ledger.Claims
	// Members has each entry once, under the pool that its object names.
	Members ledger.PoolMembers
	// Pools are all pools. Each address is in a segment of at most one pool.
	Pools Catalogue
	// Nodes has the names of the Nodes that claim an address, sorted.
	Nodes nodes.Table
	// Assumed has each assumed address for one attachment.
	Assumed ledger.Assumptions
	// Missing has each missing address in one of its two maps.
	Missing ledger.Missing
	// Hosts counts the addresses in use by host and pool. No count is 0.
	Hosts ledger.HostUsage
	// Usage counts addresses by pool and namespace. No count is 0.
	Usage ledger.NamespaceUsage
	// Progress never goes back within an epoch.
	Progress ledger.Progress

	// Now is the time of the last call that passed one, in Unix nanoseconds. Cooldowns up to then may have been ended.
	Now int64
	// Gone counts, per pool, the leases of holders that the last pass of the collector found gone.
	Gone map[string]int
	// staleOverlaps are the overlaps on whose shared addresses leases came or went since their winner was decided. It
	// is empty whenever the lock is free.
	staleOverlaps []*overlap
}

// NewState returns what an empty index knows.
func NewState() *State {
	return &State{
		Leases: ledger.NewLeases(), Claims: ledger.NewClaims(),
		Members: ledger.PoolMembers{ByPool: map[string]*ledger.Members{}},
		Pools:   newCatalogue(), Nodes: nodes.New(), Assumed: ledger.NewAssumptions(),
		Missing: ledger.NewMissing(), Hosts: ledger.HostUsage{InUse: map[ledger.HostPool]int{}},
		Usage:    ledger.NamespaceUsage{Charged: map[string]map[string]int{}, Kept: map[ledger.Charge]int{}},
		Progress: ledger.Progress{Deleted: map[netip.Addr]uint64{}},
	}
}

// link makes an entry known, and counts it wherever it counts.
func (x *State) link(r *ledger.Record) {
	x.adjustCharges(r.Addr, nil, -1)
	x.Leases.Enter(r)
	x.adjustCharges(r.Addr, r, +1)
	x.count(r, +1)
	x.adjustUsage(r, +1)
	if r.State != lease.Available && r.Claim() != "" {
		x.Claims.AddClaimed(r)
	}
}

// unlink undoes link.
func (x *State) unlink(r *ledger.Record) {
	x.adjustCharges(r.Addr, r, -1)
	x.Leases.Leave(r)
	x.adjustCharges(r.Addr, nil, +1)
	x.count(r, -1)
	x.adjustUsage(r, -1)
	if r.State != lease.Available && r.Claim() != "" {
		x.Claims.RemoveClaimed(r)
	}
}

// refreshDerived brings everything that is derived from an entry up to date after it changed.
func (x *State) refreshDerived(a netip.Addr) {
	x.resolveOverlaps()
	x.Refresh(a)
}

// ChargesOf returns the charges of an address whose entry is r, nil for none.
func (x *State) ChargesOf(a netip.Addr, r *ledger.Record) (c ledger.Charges) {
	c.AddRecord(r, x.Pools.CountedAs)
	c.AddRecord(x.Missing.Gone[a], x.Pools.CountedAs)
	if h, ok := x.Assumed.ByAddr[a]; ok {
		c.Add(h.Pool, h.Charged)
	}
	return c
}

// adjustCharges counts the charges of an address whose entry is r. Whatever changes them takes them off before, and
// adds what they are afterwards.
func (x *State) adjustCharges(a netip.Addr, r *ledger.Record, by int) {
	c := x.ChargesOf(a, r)
	for _, at := range c.Of[:c.N] {
		x.Usage.Add(at, by)
	}
	x.Usage.Keep(r, x.Pools.CountedAs, by)
	x.adjustHeld(a, r, by)
}

func (x *State) count(r *ledger.Record, by int) {
	name := r.Params.Value().Pool
	m := x.Members.ByPool[name]
	if m == nil {
		m = &ledger.Members{Records: map[*ledger.Record]struct{}{}, Draining: map[*ledger.Record]struct{}{}}
		x.Members.ByPool[name] = m
	}
	if p := x.Pools.ByName[name]; p != nil && p.Whole != nil {
		p.Whole.OfBlocks.Add(m, -1)
		defer p.Whole.OfBlocks.Add(m, +1)
	}
	if by > 0 {
		m.Records[r] = struct{}{}
		if x.Pools.Drains(r) {
			m.Draining[r] = struct{}{}
		}
	} else {
		delete(m.Records, r)
		delete(m.Draining, r)
	}
	switch r.State {
	case lease.Active:
		m.Active += by
	case lease.Reserved:
		if m.Reserved += by; r.Claim() != "" {
			m.Retained += by
		}
	case lease.Available:
	}
	if r.State != lease.Available {
		x.countOverlaps(x.Pools.CountedAs(name), r.Addr, by)
	}
	if len(m.Records) == 0 {
		delete(x.Members.ByPool, name)
	}
}

// Drains reports whether a held address is outside what its pool, if there is one, has now.
func (x *Catalogue) Drains(r *ledger.Record) bool {
	p := x.ByName[r.Params.Value().Pool]
	return p != nil && r.State != lease.Available && p.Lacks(r.Addr)
}

// findDraining looks at all addresses of a pool whose plan has changed.
func (x *State) findDraining(pool string) {
	m := x.Members.ByPool[pool]
	if m == nil {
		return
	}
	if p := x.Pools.ByName[pool]; p != nil && p.Whole != nil {
		p.Whole.OfBlocks.Add(m, -1)
		defer p.Whole.OfBlocks.Add(m, +1)
	}
	clear(m.Draining)
	for r := range m.Records {
		if x.Pools.Drains(r) {
			m.Draining[r] = struct{}{}
		}
	}
}

// ServesItsOwn reports whether a pool serves each address whose object names it.
func (x *State) ServesItsOwn(pool string) bool {
	p, m := x.Pools.ByName[pool], x.Members.ByPool[pool]
	return p != nil && p.Valid() && len(p.Home().Overlaps) == 0 && (m == nil || len(m.Draining) == 0)
}
