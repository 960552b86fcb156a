package ipam

import "time"

// PoolCounts are the counts of one pool.
type PoolCounts struct {
	// Capacity is the number of addresses that the pool serves, or has leases on although it serves them no more: those
	// that another pool serves, and those that are no longer in its plan. It is the sum of Free, Cooling, Active,
	// Reserved, and what is taken of what it serves without being its own. It saturates at 2^64-1, like Served and
	// Free.
	Capacity uint64
	// Served is the number of addresses that the pool serves.
	Served uint64
	Free   uint64
	// Cooling is the number of addresses that would be free but for the cooldown; NextFree is the time at which the
	// first is free, zero when there are none.
	Cooling  uint64
	NextFree time.Time
	// Objects, Active and Reserved count the objects that name the pool.
	Objects, Active, Reserved int
}
