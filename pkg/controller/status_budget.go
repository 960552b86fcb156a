package controller

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How often status is written, of all pools and claims together. Each write is an update of etcd and an event for everybody
// who watches, as an allocation is: whatever the cluster does, most of the API server's time is to go to allocations.
const (
	// statusRate is how many changes of mere numbers are written in a second, statusEdgeRate how many edges.
	statusRate, statusEdgeRate = 10, 10
	// statusBurst is how many of either may come at once after a while without.
	statusBurst = 10
)

// urgencyOf a change of a status.
type urgencyOf int

const (
	// unchanged needs no write.
	unchanged urgencyOf = iota
	// numbers are other counts, and texts about them.
	numbers
	// edge is a condition that turned, or a pool that has become full or has addresses again.
	edge
	// answer is what somebody waits for who made, changed or deleted the object. These bound themselves.
	answer
)

// statusBudget gives objects their turns to have their status written: in the order in which they asked, edges apart from
// numbers. No object has more than one turn in statusDelay, but for answers.
type statusBudget struct {
	clock func() time.Time

	mu             sync.Mutex
	numbers, edges *rate.Limiter
	// turns are those that were given and not used, wrote when objects were written last.
	turns map[string]turn
	wrote map[string]time.Time
}

// turn is when an object's status may be written.
type turn struct {
	at   time.Time
	edge bool
}

func newStatusBudget(clock func() time.Time) *statusBudget {
	return &statusBudget{
		clock: clock, numbers: rate.NewLimiter(statusRate, statusBurst), edges: rate.NewLimiter(statusEdgeRate, statusBurst),
		turns: map[string]turn{}, wrote: map[string]time.Time{},
	}
}

// ask returns how long an object has to wait before a change of its status is written, 0 for not at all: then it
// counts as written. Who waits asks again.
func (b *statusBudget) ask(object string, u urgencyOf) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	if u == unchanged {
		delete(b.turns, object)
		return 0
	}
	t, given := b.turns[object]
	switch {
	case u == answer:
		t = turn{at: now}
	case !given || u == edge && !t.edge:
		t = b.give(u, now, b.wrote[object])
	}
	if wait := t.at.Sub(now); wait > 0 {
		b.turns[object] = t
		return wait
	}
	delete(b.turns, object)
	b.wrote[object] = now
	return 0
}

// give is the next turn of a kind of change, for an object that was written at a time.
func (b *statusBudget) give(u urgencyOf, now, wrote time.Time) turn {
	limit := b.numbers
	if u == edge {
		limit = b.edges
	}
	at := now.Add(limit.ReserveN(now, 1).DelayFrom(now))
	if next := wrote.Add(statusDelay); at.Before(next) {
		at = next
	}
	return turn{at: at, edge: u == edge}
}

// until is how long an object still waits for a turn that it was given, and whether that is one of an edge; 0 without one.
func (b *statusBudget) until(object string) (wait time.Duration, isEdge bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, given := b.turns[object]
	if !given {
		return 0, false
	}
	return max(0, t.at.Sub(b.clock())), t.edge
}

// forget lets go of an object that is no more.
func (b *statusBudget) forget(object string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.turns, object)
	delete(b.wrote, object)
}
