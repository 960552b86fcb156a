package limiter

import (
	"context"
	"math"
	"time"
)

const (
	// leastTime is the minimum time of any work, even if none was measured.
	leastTime = 20 * time.Millisecond
	// oldAfter is the time for which an idle limiter relies on its measurements: an API server that was slow may be
	// fast again.
	oldAfter = 2 * time.Second
)

// pace measures the duration of work: a moving average of the times between entering and leaving.
type pace struct {
	mean time.Duration
	// moved is the time at which a place was last given back, or taken while others were free.
	moved time.Time
	// old reports whether the limiter was idle: the next measurement replaces the mean.
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

// needs returns the time that a caller must have left when it begins. It is one and a half times the mean, to include
// what follows the work, such as the confirmation of a write. It is bounded, so that a limiter can never shut out
// everybody permanently.
func (p *pace) needs() time.Duration {
	if p.old {
		return leastTime
	}
	return min(max(p.mean*3/2, leastTime), MaxWait)
}

// wait estimates the wait of a caller that comes now while all places are taken. It counts the callers before it, at
// the pace of the last ones. If nothing has moved for longer than the work takes, it adds that time once more.
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

// Backlog estimates the time until all waiting callers are served; zero if nobody waits.
func (l *Limiter) Backlog() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := 0
	for class := range l.lines {
		waiting += l.lines[class].n
	}
	return time.Duration(waiting) * l.pace.mean / time.Duration(l.places)
}

// Room estimates the number of simultaneous new callers that get a place within MaxWait, at the pace of the last ones.
func (l *Limiter) Room() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pace.old || l.pace.mean == 0 {
		return math.MaxInt32
	}
	return int(min(float64(l.places)*float64(MaxWait)/float64(l.pace.mean), math.MaxInt32))
}

type lateKey struct{}

// Late records that a caller has already waited for a time: its wait for a place is shortened by that time.
func Late(ctx context.Context, by time.Duration) context.Context {
	return context.WithValue(ctx, lateKey{}, by)
}

func lateness(ctx context.Context) time.Duration {
	by, _ := ctx.Value(lateKey{}).(time.Duration)
	return by
}
