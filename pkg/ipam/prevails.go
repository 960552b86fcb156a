package ipam

import "cmp"

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
