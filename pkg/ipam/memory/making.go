package memory

import (
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// The answers to writes of pools and the events of the watch come in any order. Events of the same write and of later
// ones, including the deletion of the pool, may come before the answer. The answer may also come before events of an
// earlier pool of the same name.

// makingPools are the pools that this process is creating, by name.
type makingPools map[string]*Making

// Making is the creation of pools of one name.
type Making struct {
	// N is the number of requests that are in progress.
	N int
	// Gone is when the youngest pool was created that has been deleted meanwhile.
	Gone time.Time
}

// Ended notes the deletion of a pool, for answers that come after it.
func (m makingPools) Ended(p ipam.Pool) {
	if one := m[p.Name]; one != nil && one.Gone.Before(p.Created) {
		one.Gone = p.Created
	}
}
