// Package limiter bounds how much of one kind of work is under way, and refuses at once what could not be done in time.
//
// Past saturation a queue that serves whoever has waited longest serves only callers who are about to give up: the wait
// of its head is as long as callers wait at all, and what they asked for is done when they have gone. So a caller is
// refused at once when the work before its own takes longer than it can wait, and nothing is begun that would be done
// too late.
package limiter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// ErrOverloaded is the error of a caller that could not be served in time: nothing was begun.
var ErrOverloaded = errors.New("too much work waits")

// Class distinguishes two kinds of work.
type Class int

const (
	// Take is work that takes something, such as an allocation.
	Take Class = iota
	// GiveBack is work that gives something back. It goes first: it makes room, and its callers come again until it is
	// done.
	GiveBack
	classes
)

const (
	// MaxWait bounds how long a caller with a deadline waits. It is less than half of ten seconds, which is how long
	// the shortest client waits that sends no deadline: an estimate may be wrong by a factor of two.
	MaxWait = 4 * time.Second
	// inARow is how often GiveBack goes first while Take waits: one of four places goes to Take all the same.
	inARow = 3
)

// Limiter lets a number of callers in at once. Those who wait take turns by their key, such as a pool: first come,
// first served within one.
type Limiter struct {
	mu     sync.Mutex
	places int
	taken  int
	lines  [classes]line
	row    int // how often GiveBack went first since Take was served last
	pace   pace
}

// New returns a limiter with a number of places.
func New(places int) *Limiter {
	l := &Limiter{places: places}
	for class := range l.lines {
		l.lines[class].queues = map[string][]*waiter{}
	}
	return l
}

// waiter is a caller that waits. answer gets one value: whether the caller has got a place.
type waiter struct {
	answer chan bool
	// until is when it is too late to begin; zero for a caller without a deadline.
	until time.Time
}

// Enter waits for a place and returns a function that gives it back. The error is ErrOverloaded when the caller could
// not be served before its deadline, and the context's when that ended. A caller without a deadline waits for ever.
func (l *Limiter) Enter(ctx context.Context, class Class, key string) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, err := l.begin(ctx, class, key)
	switch {
	case err != nil:
		return nil, err
	case w == nil:
		return l.entered(), nil
	}
	late := make(<-chan time.Time)
	if !w.until.IsZero() {
		timer := time.NewTimer(time.Until(w.until))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case in := <-w.answer:
		return l.answered(ctx, in)
	case <-ctx.Done():
	case <-late:
	}
	l.mu.Lock()
	left := l.lines[class].remove(key, w)
	l.mu.Unlock()
	if left {
		return l.answered(ctx, false)
	}
	return l.answered(ctx, <-w.answer) // the answer came at the same moment
}

// answered returns the result of Enter for a caller that has waited.
func (l *Limiter) answered(ctx context.Context, in bool) (leave func(), err error) {
	switch err := ctx.Err(); {
	case err == nil && in:
		return l.entered(), nil
	case in: // for nothing: the caller has gone
		l.leave()
		return nil, err
	case err != nil:
		return nil, err
	default:
		return nil, fmt.Errorf("%w: no place came free in time", ErrOverloaded)
	}
}

// begin takes a place, or has the caller wait, or refuses it; the waiter is nil when a place was taken.
func (l *Limiter) begin(ctx context.Context, class Class, key string) (*waiter, error) {
	now := time.Now()
	deadline, bounded := ctx.Deadline()
	bounded = bounded && !failpoint.Broken("overload")
	l.mu.Lock()
	defer l.mu.Unlock()
	patience := MaxWait
	if bounded {
		l.pace.noteIdle(now, l.taken)
		if patience = min(patience, deadline.Sub(now)-l.pace.needs()); patience < 0 {
			return nil, fmt.Errorf("%w: what is begun now takes %s, and %s are left", ErrOverloaded, l.pace.needs(),
				deadline.Sub(now).Round(time.Millisecond))
		}
	}
	if l.taken < l.places || failpoint.Broken("gate") {
		l.taken++
		l.pace.moved = now
		return nil, nil
	}
	patience -= lateness(ctx)
	if wait := l.wait(class, key, now); bounded && wait > patience {
		return nil, fmt.Errorf("%w: a place comes free in about %s, and it may take %s", ErrOverloaded,
			wait.Round(time.Millisecond), patience.Round(time.Millisecond))
	}
	w := &waiter{answer: make(chan bool, 1)}
	if bounded {
		w.until = now.Add(patience)
	}
	l.lines[class].add(key, w)
	return w, nil
}

// entered returns a function that gives back the place that was taken now, once.
func (l *Limiter) entered() func() {
	began := time.Now()
	return sync.OnceFunc(func() {
		l.mu.Lock()
		l.pace.add(time.Since(began))
		l.mu.Unlock()
		l.leave()
	})
}

// leave gives a place back, to the next in turn for which it is not too late.
func (l *Limiter) leave() {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pace.moved = now
	for w := l.next(); w != nil; w = l.next() {
		in := w.until.IsZero() || now.Before(w.until)
		w.answer <- in
		if in {
			return
		}
	}
	l.taken--
}

// next removes the next waiter from its line; nil when nobody waits.
func (l *Limiter) next() *waiter {
	takes, gives := &l.lines[Take], &l.lines[GiveBack]
	if gives.n > 0 && (takes.n == 0 || l.row < inARow && !failpoint.Broken("releases")) {
		l.row++
		return gives.next()
	}
	l.row = 0
	return takes.next()
}

// Busy returns how many places are taken and how many callers wait for one.
func (l *Limiter) Busy() (taken, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for class := range l.lines {
		waiting += l.lines[class].n
	}
	return l.taken, waiting
}
