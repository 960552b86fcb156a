package gate

import (
	"context"
	"math"
	"time"
)

const (
	// leastTime is what any work needs, also where none was measured.
	leastTime = 20 * time.Millisecond
	// oldAfter is how long an idle gate believes what it measured: an API server that was slow may be back.
	oldAfter = 2 * time.Second
)

// pace is how long work takes: a moving average of the times between entering and leaving.
type pace struct {
	mean time.Duration
	// moved is when a place was last given back, or taken while others were free.
	moved time.Time
	// old: the gate was idle, the next measure replaces the mean.
	old bool
}

// look notices that the gate has been idle.
func (p *pace) look(now time.Time, taken int) {
	if taken == 0 && now.Sub(p.moved) >= oldAfter {
		p.old = true
	}
}

// took takes a measure.
func (p *pace) took(d time.Duration) {
	const weight = 16
	if p.old || p.mean == 0 {
		p.mean, p.old = d, false
		return
	}
	p.mean += (d - p.mean) / weight
}

// needs is how much time a caller must have left for a beginning to make sense: half as much again as the mean, for what comes
// after it, such as the confirmation of a write. It is never so long that a gate could shut out everybody for good.
func (p *pace) needs() time.Duration {
	if p.old {
		return leastTime
	}
	return min(max(p.mean*3/2, leastTime), MaxWait)
}

// wait is about how long somebody who comes now waits for a place while all are taken: those before him at the pace of the
// last ones, and as long again as nothing has moved, where that is longer than the work takes.
func (g *Gate) wait(class Class, key string, now time.Time) time.Duration {
	ahead := g.lines[class].ahead(key)
	if class == GiveBack {
		ahead += min(g.lines[Take].n, (ahead+g.row)/inARow)
	} else {
		ahead += min(g.lines[GiveBack].n, inARow*(ahead+1))
	}
	wait := time.Duration(ahead+1) * g.pace.mean / time.Duration(g.places)
	if still := now.Sub(g.pace.moved); still > g.pace.mean {
		wait += still
	}
	return wait
}

// Backlog is about how long all who wait will have waited; zero when nobody does.
func (g *Gate) Backlog() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting := 0
	for class := range g.lines {
		waiting += g.lines[class].n
	}
	return time.Duration(waiting) * g.pace.mean / time.Duration(g.places)
}

// Room is how many who come at once get a place within MaxWait, at the pace of the last ones.
func (g *Gate) Room() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pace.old || g.pace.mean == 0 {
		return math.MaxInt32
	}
	return int(min(float64(g.places)*float64(MaxWait)/float64(g.pace.mean), math.MaxInt32))
}

type lateKey struct{}

// Late notes that a caller has waited for a time before he came: so much less he waits for a place.
func Late(ctx context.Context, by time.Duration) context.Context {
	return context.WithValue(ctx, lateKey{}, by)
}

func lateness(ctx context.Context) time.Duration {
	by, _ := ctx.Value(lateKey{}).(time.Duration)
	return by
}
