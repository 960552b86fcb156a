package memory

import "github.com/bcsnet/bcsnet/pkg/ipam/freeset"

// cooldowns are the addresses of a pool that nothing keeps but the cooldown.
type cooldowns struct {
	// Set has them as taken.
	Set *freeset.Set
	// queue says when their cooldowns end. It has every address of the set, and others that were in it.
	queue cooldownQueue
}

// cooldown is when that of an address ends, in Unix nanoseconds, and the address's number in the pool.
type cooldown struct {
	ends   int64
	number uint64
}

// newCooldowns returns those of a pool of n addresses, of which none cools.
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
