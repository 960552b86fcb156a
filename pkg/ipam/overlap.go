package ipam

import (
	"cmp"

	"go4.org/netipx"
)

// overlap is the addresses that two pools share; one of the two serves them all.
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
	if Prevails(a.Pool, b.Pool, o.held[0] > 0, o.held[1] > 0) {
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

// Prevails reports whether a, and not b, serves the addresses that both have: one that is not being deleted
// does, then the one that holds leases on them, then the older, then by name.
func Prevails(a, b Pool, aHolds, bHolds bool) bool {
	return cmp.Or(
		FalseFirst(a.Terminating, b.Terminating),
		FalseFirst(bHolds, aHolds),
		a.Created.Compare(b.Created),
		cmp.Compare(a.Name, b.Name)) <= 0
}

// FalseFirst orders false before true.
func FalseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
