package conditions

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// Rates of status writes, for all pools and claims together. Like an allocation, each write is an update of etcd and an
// event for all watchers: most of the API server's time must stay available for allocations.
const (
	// WriteDelay gathers the changes of an object into one status write.
	WriteDelay = 400 * time.Millisecond
	// statusRate is the number of writes per second for changed counts only, statusEdgeRate the number for edges.
	statusRate, statusEdgeRate = 10, 10
	// statusBurst is the number of either that may be written at once after a pause.
	statusBurst = 10
)

// Urgency says how soon a change of a status must be written.
type Urgency int

const (
	// Unchanged needs no write.
	Unchanged Urgency = iota
	// Numbers are changed counts, and texts about them.
	Numbers
	// Edge is a condition that changed its status or reason, or a pool that has become full or has addresses again.
	Edge
	// Answer is a change for which a user waits after creating, changing or deleting the object. Users limit the rate
	// of these themselves.
	Answer
)

// Budget gives objects turns to write their status: in the order in which they asked, edges separately from numbers. No
// object has more than one turn in WriteDelay, except for answers. A turn that is not used costs nothing: if a change
// is undone, or an object is deleted, the next one moves up.
type Budget struct {
	clock func() time.Time

	mu             sync.Mutex
	numbers, edges *rate.Limiter
	// turns has the waiting objects; wrote has the times at which objects were last written.
	turns map[string]turn
	wrote map[string]time.Time
	asked uint64
}

// turn is the place of an object in the queue.
type turn struct {
	// number orders waiting objects by the time at which they began to wait.
	number uint64
	edge   bool
	// ready is the earliest time at which the object may be written; at is the time at which it should ask again.
	ready, at time.Time
}

// lateTurn is the delay after which an object that has not asked again no longer holds up the others.
const lateTurn = 2 * time.Second

// NewBudget returns an unused budget. clock may be any steady clock.
func NewBudget(clock func() time.Time) *Budget {
	return &Budget{
		clock: clock, numbers: rate.NewLimiter(statusRate, statusBurst), edges: rate.NewLimiter(statusEdgeRate,
			statusBurst),
		turns: map[string]turn{}, wrote: map[string]time.Time{},
	}
}

// Ask returns the time that an object has to wait before a change of its status is written; 0 for no wait, and then the
// write is counted. After the wait, the caller must ask again.
func (b *Budget) Ask(object string, u Urgency) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	if u == Unchanged {
		delete(b.turns, object)
		return 0
	}
	t, waits := b.turns[object]
	if !waits || u == Edge && !t.edge {
		b.asked++
		t = turn{number: b.asked, edge: u == Edge, ready: b.wrote[object].Add(WriteDelay)}
	}
	if wait := b.wait(t, now); wait > 0 && u != Answer && !failpoint.Broken("budget") {
		t.at = now.Add(wait)
		b.turns[object] = t
		return wait
	}
	delete(b.turns, object)
	b.wrote[object] = now
	return 0
}

// wait returns the time until a turn comes; 0 if it has come, and then the write is charged.
func (b *Budget) wait(t turn, now time.Time) time.Duration {
	if rest := t.ready.Sub(now); rest > 0 {
		return rest
	}
	limit := b.numbers
	if t.edge {
		limit = b.edges
	}
	lack := float64(b.ahead(t, now)+1) - limit.TokensAt(now)
	if lack <= 0 && limit.AllowN(now, 1) {
		return 0
	}
	return max(time.Millisecond, time.Duration(lack/float64(limit.Limit())*float64(time.Second)))
}

// ahead returns the number of objects that have waited longer than a turn's object and could be written now.
func (b *Budget) ahead(t turn, now time.Time) (n int) {
	for _, other := range b.turns {
		if other.edge == t.edge && other.number < t.number && !other.ready.After(now) && now.Sub(other.at) < lateTurn {
			n++
		}
	}
	return n
}

// Until returns the remaining wait of an object with a turn, and whether the turn is for an edge; 0 without a turn.
func (b *Budget) Until(object string) (wait time.Duration, isEdge bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, given := b.turns[object]
	if !given {
		return 0, false
	}
	return max(0, t.at.Sub(b.clock())), t.edge
}

// Forget removes an object that no longer exists.
func (b *Budget) Forget(object string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.turns, object)
	delete(b.wrote, object)
}
