package memory

import (
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// What this process writes of pools, and what the watch delivers of them, come in any order: an answer may be overtaken
// by events of the same write and of later ones, up to the end of the pool. It may itself overtake events of an
// earlier pool of the name.

// makingPools are the pools that this process is making, by name.
type makingPools map[string]*Making

// Making is how many requests to make a pool are under way, and when the last one of the name was made that has ended
// meanwhile.
type Making struct {
	N    int
	Gone time.Time
}

// Ended notes the end of a pool, for answers that come after it.
func (m makingPools) Ended(p ipam.Pool) {
	if one := m[p.Name]; one != nil && one.Gone.Before(p.Created) {
		one.Gone = p.Created
	}
}
