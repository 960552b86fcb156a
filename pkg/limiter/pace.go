package limiter

import (
	"context"
	"math"
	"time"
)

const (
	// leastTime is what any work needs, also where none was measured.
	leastTime = 20 * time.Millisecond
	// oldAfter is how long an idle limiter relies on what it measured: an API server that was slow may be fast again.
	oldAfter = 2 * time.Second
)

// pace is how long work takes: a moving average of the times between entering and leaving.
type pace struct {
	mean time.Duration
	// moved is when a place was last given back, or taken while others were free.
	moved time.Time
	// old: the limiter was idle, the next measure replaces the mean.
	old bool
}

// noteIdle notes whether the limiter has been idle.
func (p *pace) noteIdle(now time.Time, taken int) {
	if taken == 0 && now.Sub(p.moved) >= oldAfter {
		p.old = true
	}
}

// add adds a measurement to the average.
func (p *pace) add(d time.Duration) {
	const weight = 16
	if p.old || p.mean == 0 {
		p.mean, p.old = d, false
		return
	}
	p.mean += (d - p.mean) / weight
}

// needs returns how much time a caller must have left for a beginning to make sense. It is half as much again as the
// mean, for what comes after the work, such as the confirmation of a write. It is never so long that a limiter could
// shut out everybody for good.
func (p *pace) needs() time.Duration {
	if p.old {
		return leastTime
	}
	return min(max(p.mean*3/2, leastTime), MaxWait)
}

// wait estimates how long a caller that comes now waits for a place while all are taken. It counts those before it at
// the pace of the last ones. Where nothing has moved for longer than the work takes, it adds that time once more.
func (l *Limiter) wait(class Class, key string, now time.Time) time.Duration {
	ahead := l.lines[class].ahead(key)
	if class == GiveBack {
		ahead += min(l.lines[Take].n, (ahead+l.row)/inARow)
	} else {
		ahead += min(l.lines[GiveBack].n, inARow*(ahead+1))
	}
	wait := time.Duration(ahead+1) * l.pace.mean / time.Duration(l.places)
	if still := now.Sub(l.pace.moved); still > l.pace.mean {
		wait += still
	}
	return wait
}

// Backlog estimates how long all who wait will have waited; zero when nobody does.
func (l *Limiter) Backlog() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := 0
	for class := range l.lines {
		waiting += l.lines[class].n
	}
	return time.Duration(waiting) * l.pace.mean / time.Duration(l.places)
}

// Room estimates how many callers that come at once get a place within MaxWait, at the pace of the last ones.
func (l *Limiter) Room() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pace.old || l.pace.mean == 0 {
		return math.MaxInt32
	}
	return int(min(float64(l.places)*float64(MaxWait)/float64(l.pace.mean), math.MaxInt32))
}

type lateKey struct{}

// Late notes that a caller has waited for a time before it came: it waits so much less for a place.
func Late(ctx context.Context, by time.Duration) context.Context {
	return context.WithValue(ctx, lateKey{}, by)
}

func lateness(ctx context.Context) time.Duration {
	by, _ := ctx.Value(lateKey{}).(time.Duration)
	return by
}
