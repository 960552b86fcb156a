package memory

import "github.com/bcsnet/bcsnet/pkg/ipam/freeset"

// cooldowns are the addresses of a pool that are not free only because they cool.
type cooldowns struct {
	// Set has them as taken.
	Set *freeset.Set
	// queue has the end of the cooldown of each address in the set, and of some that have left it. Check bounds those.
	queue cooldownQueue
}

// cooldown is the cooldown of one address.
type cooldown struct {
	ends   int64  // in Unix nanoseconds
	number uint64 // of the address in the pool
}

// newCooldowns returns the cooldowns of a pool of n addresses of which none cools.
func newCooldowns(n uint64) *cooldowns { return &cooldowns{Set: freeset.New(n)} }

// cooldownQueue has the cooldown that ends first in front.
type cooldownQueue []cooldown

// Len, Less, Swap, Push and Pop are those of a heap.
func (q cooldownQueue) Len() int { return len(q) }

// Less orders cooldowns by their ends.
func (q cooldownQueue) Less(i, j int) bool { return q[i].ends < q[j].ends }

// Swap exchanges two cooldowns.
func (q cooldownQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds a cooldown, as package heap wants.
func (q *cooldownQueue) Push(r any) { *q = append(*q, r.(cooldown)) }

// Pop removes the last one, as package heap wants.
func (q *cooldownQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
