package ipam

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// state is what the index knows, without its lock. An address is free in the set of the pool that serves it exactly
// when occupied says no and, once its cooldowns have expired, it does not cool. Each part keeps a rule
// of its own, and knows no other part; what touches several of them is a method of state.
type state struct {
	leases   leaseTable
	claims   claimTable
	members  poolMembers
	pools    catalogue
	nodes    nodeTable
	assumed  assumptions
	missing  missingLeases
	hosts    hostUsage
	usage    namespaceUsage
	progress progress

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
		leases: newLeaseTable(), claims: newClaimTable(), members: poolMembers{byPool: map[string]*members{}},
		pools: newCatalogue(), nodes: newNodeTable(), assumed: newAssumptions(),
		missing: newMissingLeases(), hosts: hostUsage{inUse: map[hostPool]int{}},
		usage:    namespaceUsage{charged: map[string]map[string]int{}, kept: map[charge]int{}},
		progress: progress{deleted: map[netip.Addr]uint64{}},
	}
}

// link makes an entry known, and counts it wherever it counts.
func (x *state) link(r *record) {
	x.adjustCharges(r.addr, nil, -1)
	x.leases.enter(r)
	x.adjustCharges(r.addr, r, +1)
	x.count(r, +1)
	x.adjustUsage(r, +1)
	if r.state != lease.Available && r.claim() != "" {
		x.claims.addClaimed(r)
	}
}

// unlink undoes link.
func (x *state) unlink(r *record) {
	x.adjustCharges(r.addr, r, -1)
	x.leases.leave(r)
	x.adjustCharges(r.addr, nil, +1)
	x.count(r, -1)
	x.adjustUsage(r, -1)
	if r.state != lease.Available && r.claim() != "" {
		x.claims.removeClaimed(r)
	}
}

// refreshDerived brings everything that is derived from an entry up to date after it changed.
func (x *state) refreshDerived(a netip.Addr) {
	x.resolveOverlaps()
	x.refresh(a)
}

// chargesOf returns the charges of an address whose entry is r, nil for none.
func (x *state) chargesOf(a netip.Addr, r *record) (c charges) {
	c.addRecord(r, x.pools.countedAs)
	c.addRecord(x.missing.gone[a], x.pools.countedAs)
	if h, ok := x.assumed.byAddr[a]; ok {
		c.add(h.Pool, h.Charged)
	}
	return c
}

// adjustCharges counts the charges of an address whose entry is r. Whatever changes them takes them off before, and
// adds what they are afterwards.
func (x *state) adjustCharges(a netip.Addr, r *record, by int) {
	c := x.chargesOf(a, r)
	for _, at := range c.of[:c.n] {
		x.usage.charge(at, by)
	}
	x.usage.keep(r, x.pools.countedAs, by)
	x.adjustHeld(a, r, by)
}

func (x *state) count(r *record, by int) {
	name := r.params.Value().Pool
	m := x.members.byPool[name]
	if m == nil {
		m = &members{records: map[*record]struct{}{}, draining: map[*record]struct{}{}}
		x.members.byPool[name] = m
	}
	if p := x.pools.byName[name]; p != nil && p.parent != nil {
		p.parent.ofBlocks.add(m, -1)
		defer p.parent.ofBlocks.add(m, +1)
	}
	if by > 0 {
		m.records[r] = struct{}{}
		if x.drains(r) {
			m.draining[r] = struct{}{}
		}
	} else {
		delete(m.records, r)
		delete(m.draining, r)
	}
	switch r.state {
	case lease.Active:
		m.active += by
	case lease.Reserved:
		if m.reserved += by; r.claim() != "" {
			m.retained += by
		}
	case lease.Available:
	}
	if r.state != lease.Available {
		x.countOverlaps(x.pools.countedAs(name), r.addr, by)
	}
	if len(m.records) == 0 {
		delete(x.members.byPool, name)
	}
}

// drains reports whether a held address is outside what its pool, if there is one, has now.
func (x *state) drains(r *record) bool {
	p := x.pools.byName[r.params.Value().Pool]
	return p != nil && r.state != lease.Available && p.Lacks(r.addr)
}

// findDraining looks at all addresses of a pool whose plan has changed.
func (x *state) findDraining(pool string) {
	m := x.members.byPool[pool]
	if m == nil {
		return
	}
	if p := x.pools.byName[pool]; p != nil && p.parent != nil {
		p.parent.ofBlocks.add(m, -1)
		defer p.parent.ofBlocks.add(m, +1)
	}
	clear(m.draining)
	for r := range m.records {
		if x.drains(r) {
			m.draining[r] = struct{}{}
		}
	}
}

// servesItsOwn reports whether a pool serves each address whose object names it.
func (x *state) servesItsOwn(pool string) bool {
	p, m := x.pools.byName[pool], x.members.byPool[pool]
	return p != nil && p.Valid() && len(p.home().overlaps) == 0 && (m == nil || len(m.draining) == 0)
}
