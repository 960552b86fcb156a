package conditions

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// How often status is written, of all pools and claims together. Each write is an update of etcd and an event for
// everybody who watches, as an allocation is: whatever the cluster does, most of the API server's time is to go to
// allocations.
const (
	// WriteDelay gathers the changes of an object into one status write.
	WriteDelay = 400 * time.Millisecond
	// statusRate is how many changes of mere numbers are written in a second, statusEdgeRate how many edges.
	statusRate, statusEdgeRate = 10, 10
	// statusBurst is how many of either may come at once after a while without.
	statusBurst = 10
)

// Urgency is how soon a change of a status has to be written.
type Urgency int

const (
	// Unchanged needs no write.
	Unchanged Urgency = iota
	// Numbers are other counts, and texts about them.
	Numbers
	// Edge is a condition that turned, or a pool that has become full or has addresses again.
	Edge
	// Answer is a change that a user waits for who made, changed or deleted the object. Users bound these themselves.
	Answer
)

// Budget gives objects their turns to have their status written: in the order in which they asked, edges apart from
// numbers. No object has more than one turn in WriteDelay, but for answers. What is not written costs nothing: a change
// that is undone, or an object that goes, leaves its place to the next.
type Budget struct {
	clock func() time.Time

	mu             sync.Mutex
	numbers, edges *rate.Limiter
	// turns has the objects that wait, wrote when objects were written last.
	turns map[string]turn
	wrote map[string]time.Time
	asked uint64
}

// turn is the place of an object among those that wait.
type turn struct {
	// number orders those that wait by when they began to.
	number uint64
	edge   bool
	// ready is from when the object may be written at all; at is when it should ask again.
	ready, at time.Time
}

// lateTurn is by how much an object may be late with asking again until it no longer holds up those behind it.
const lateTurn = 2 * time.Second

// NewBudget returns a budget of which nothing is used. clock may be any that runs steadily.
func NewBudget(clock func() time.Time) *Budget {
	return &Budget{
		clock: clock, numbers: rate.NewLimiter(statusRate, statusBurst), edges: rate.NewLimiter(statusEdgeRate,
			statusBurst),
		turns: map[string]turn{}, wrote: map[string]time.Time{},
	}
}

// Ask returns how long an object has to wait before a change of its status is written; 0 for not at all, and then it
// counts as written. A caller that has to wait asks again.
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

// wait returns how long it takes until a turn comes; 0 when it has come, and then the write is charged.
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

// ahead counts the objects that have waited longer than a turn's and could be written now.
func (b *Budget) ahead(t turn, now time.Time) (n int) {
	for _, other := range b.turns {
		if other.edge == t.edge && other.number < t.number && !other.ready.After(now) && now.Sub(other.at) < lateTurn {
			n++
		}
	}
	return n
}

// Until returns how long an object still waits for the turn that it was given, and whether it is one of an edge; 0
// without a turn.
func (b *Budget) Until(object string) (wait time.Duration, isEdge bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, given := b.turns[object]
	if !given {
		return 0, false
	}
	return max(0, t.at.Sub(b.clock())), t.edge
}

// Forget drops an object that is no more.
func (b *Budget) Forget(object string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.turns, object)
	delete(b.wrote, object)
}
