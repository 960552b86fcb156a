package ipam

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// state is what the index knows, without its lock. An address is free in the set of the pool that serves it exactly
// when occupied says no and, once its cooldowns have expired, it does not cool. Each part keeps a rule
// of its own, and knows no other part; what touches several of them is a method of state.
type state struct {
	leases   ledger.Leases
	claims   ledger.Claims
	members  ledger.PoolMembers
	pools    catalogue
	nodes    nodeTable
	assumed  ledger.Assumptions
	missing  ledger.Missing
	hosts    ledger.HostUsage
	usage    ledger.NamespaceUsage
	progress ledger.Progress

	// now is the time of whoever looked last, in Unix nanoseconds.
	now int64
	// gone counts, per pool, the leases whose holders are gone as far as anybody has looked.
	gone map[string]int
	// staleOverlaps are those on whose shared addresses leases came or went since it was decided who serves them.
	staleOverlaps []*overlap
}

// newState returns what an empty index knows.
func newState() *state {
	return &state{
		leases: ledger.NewLeases(), claims: ledger.NewClaims(),
		members: ledger.PoolMembers{ByPool: map[string]*ledger.Members{}},
		pools:   newCatalogue(), nodes: newNodeTable(), assumed: ledger.NewAssumptions(),
		missing: ledger.NewMissing(), hosts: ledger.HostUsage{InUse: map[ledger.HostPool]int{}},
		usage:    ledger.NamespaceUsage{Charged: map[string]map[string]int{}, Kept: map[ledger.Charge]int{}},
		progress: ledger.Progress{Deleted: map[netip.Addr]uint64{}},
	}
}

// link makes an entry known, and counts it wherever it counts.
func (x *state) link(r *ledger.Record) {
	x.adjustCharges(r.Addr, nil, -1)
	x.leases.Enter(r)
	x.adjustCharges(r.Addr, r, +1)
	x.count(r, +1)
	x.adjustUsage(r, +1)
	if r.State != lease.Available && r.Claim() != "" {
		x.claims.AddClaimed(r)
	}
}

// unlink undoes link.
func (x *state) unlink(r *ledger.Record) {
	x.adjustCharges(r.Addr, r, -1)
	x.leases.Leave(r)
	x.adjustCharges(r.Addr, nil, +1)
	x.count(r, -1)
	x.adjustUsage(r, -1)
	if r.State != lease.Available && r.Claim() != "" {
		x.claims.RemoveClaimed(r)
	}
}

// refreshDerived brings everything that is derived from an entry up to date after it changed.
func (x *state) refreshDerived(a netip.Addr) {
	x.resolveOverlaps()
	x.refresh(a)
}

// chargesOf returns the charges of an address whose entry is r, nil for none.
func (x *state) chargesOf(a netip.Addr, r *ledger.Record) (c ledger.Charges) {
	c.AddRecord(r, x.pools.countedAs)
	c.AddRecord(x.missing.Gone[a], x.pools.countedAs)
	if h, ok := x.assumed.ByAddr[a]; ok {
		c.Add(h.Pool, h.Charged)
	}
	return c
}

// adjustCharges counts the charges of an address whose entry is r. Whatever changes them takes them off before, and
// adds what they are afterwards.
func (x *state) adjustCharges(a netip.Addr, r *ledger.Record, by int) {
	c := x.chargesOf(a, r)
	for _, at := range c.Of[:c.N] {
		x.usage.Add(at, by)
	}
	x.usage.Keep(r, x.pools.countedAs, by)
	x.adjustHeld(a, r, by)
}

func (x *state) count(r *ledger.Record, by int) {
	name := r.Params.Value().Pool
	m := x.members.ByPool[name]
	if m == nil {
		m = &ledger.Members{Records: map[*ledger.Record]struct{}{}, Draining: map[*ledger.Record]struct{}{}}
		x.members.ByPool[name] = m
	}
	if p := x.pools.byName[name]; p != nil && p.parent != nil {
		p.parent.ofBlocks.Add(m, -1)
		defer p.parent.ofBlocks.Add(m, +1)
	}
	if by > 0 {
		m.Records[r] = struct{}{}
		if x.drains(r) {
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
		x.countOverlaps(x.pools.countedAs(name), r.Addr, by)
	}
	if len(m.Records) == 0 {
		delete(x.members.ByPool, name)
	}
}

// drains reports whether a held address is outside what its pool, if there is one, has now.
func (x *state) drains(r *ledger.Record) bool {
	p := x.pools.byName[r.Params.Value().Pool]
	return p != nil && r.State != lease.Available && p.Lacks(r.Addr)
}

// findDraining looks at all addresses of a pool whose plan has changed.
func (x *state) findDraining(pool string) {
	m := x.members.ByPool[pool]
	if m == nil {
		return
	}
	if p := x.pools.byName[pool]; p != nil && p.parent != nil {
		p.parent.ofBlocks.Add(m, -1)
		defer p.parent.ofBlocks.Add(m, +1)
	}
	clear(m.Draining)
	for r := range m.Records {
		if x.drains(r) {
			m.Draining[r] = struct{}{}
		}
	}
}

// servesItsOwn reports whether a pool serves each address whose object names it.
func (x *state) servesItsOwn(pool string) bool {
	p, m := x.pools.byName[pool], x.members.ByPool[pool]
	return p != nil && p.Valid() && len(p.home().overlaps) == 0 && (m == nil || len(m.Draining) == 0)
}
