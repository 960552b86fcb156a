package ipam

import "time"

// IdleBlock is a block in which nobody has an address, none is reserved and none cools.
type IdleBlock struct {
	Block, Namespace, Parent string
	Created                  time.Time
	// Used is when an address of it was given up last; zero if none ever was.
	Used time.Time
	// Abandoned: its namespace is gone, or, with ParentGoes, its parent is being deleted.
	Abandoned, ParentGoes bool
	// After is the time for which it stays while its namespace lives; 0 for ever.
	After time.Duration
	// Others are the blocks of its namespace in the same parent that stay, in the order in which it draws from them.
	Others []string
}
