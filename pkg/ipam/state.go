package ipam

import "net/netip"

// state is what the index knows, without its lock. An address is free in the set of the pool that serves it exactly when
// occupied says no and, once its cooldowns have expired, it does not cool. Each of the embedded parts keeps a rule of its
// own; what touches several of them is a method of state.
type state struct {
	leaseTable
	claimTable
	poolMembers
	catalogue
	nodeTable
	assumptions
	missingLeases
	hostUsage
	namespaceUsage
	progress

	// now is the time of whoever looked last, in Unix nanoseconds.
	now int64
	// staleOverlaps are those on whose shared addresses leases came or went since it was decided who serves them.
	staleOverlaps []*overlap
}

func newState() state {
	return state{
		leaseTable: newLeaseTable(), claimTable: newClaimTable(), poolMembers: poolMembers{byPool: map[string]*members{}},
		catalogue: newCatalogue(), nodeTable: newNodeTable(), assumptions: newAssumptions(), missingLeases: newMissingLeases(),
		hostUsage: hostUsage{inUse: map[hostPool]int{}}, namespaceUsage: namespaceUsage{charged: map[string]map[string]int{}},
		progress: progress{deleted: map[netip.Addr]uint64{}},
	}
}

// link makes an entry known, and counts it wherever it counts.
func (x *state) link(r *record) {
	x.adjustCharges(r.addr, nil, -1)
	x.leaseTable.enter(r)
	x.adjustCharges(r.addr, r, +1)
	x.count(r, +1)
	x.adjustUsage(r, +1)
	if r.state != Available && r.claim() != "" {
		x.addClaimed(r)
	}
}

// unlink undoes link.
func (x *state) unlink(r *record) {
	x.adjustCharges(r.addr, r, -1)
	x.leaseTable.leave(r)
	x.adjustCharges(r.addr, nil, +1)
	x.count(r, -1)
	x.adjustUsage(r, -1)
	if r.state != Available && r.claim() != "" {
		x.removeClaimed(r)
	}
}

// refreshDerived brings everything that is derived from an entry up to date after it changed.
func (x *state) refreshDerived(a netip.Addr) {
	x.resolveOverlaps()
	x.refresh(a)
}
