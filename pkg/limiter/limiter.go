// Package limiter limits the work of one kind that is in progress, and refuses at once work that would not be done in
// time.
//
// After saturation, a queue that serves the longest-waiting caller serves only callers who are about to give up: the
// wait at its head is as long as callers wait at all, and they are gone when their work is done. Therefore a caller is
// refused at once if the work before its own takes longer than it can wait. No work is begun that would end too late.
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
	// GiveBack is work that gives something back. It goes first: it makes room, and its callers repeat it until it is
	// done.
	GiveBack
	classes
)

const (
	// MaxWait bounds the wait of a caller with a deadline. It is less than half of ten seconds, after which the most
	// impatient clients without a deadline give up: an estimate may be wrong by a factor of two.
	MaxWait = 4 * time.Second
	// inARow is the number of times that GiveBack goes first while Take waits: every fourth place goes to Take.
	inARow = 3
)

// Limiter lets a limited number of callers in at the same time. Waiting callers take turns by their key, such as a
// pool; callers with the same key are served in the order of their arrival.
type Limiter struct {
	mu     sync.Mutex
	places int
	taken  int
	lines  [classes]line
	row    int // number of times in a row that GiveBack went first since Take was last served
	pace   pace
}

// New returns a limiter with the given number of places.
func New(places int) *Limiter {
	l := &Limiter{places: places}
	for class := range l.lines {
		l.lines[class].queues = map[string][]*waiter{}
	}
	return l
}

// waiter is a waiting caller. answer gets one value: whether the caller got a place.
type waiter struct {
	answer chan bool
	// until is the time after which it is too late to begin; zero for a caller without a deadline.
	until time.Time
}

// Enter waits for a place and returns a function that gives it back. The error is ErrOverloaded if the caller cannot be
// served before its deadline, and the context's error if the context ended. A caller without a deadline waits without
// limit.
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
	case in: // in vain: the caller is gone
		l.leave()
		return nil, err
	case err != nil:
		return nil, err
	default:
		return nil, fmt.Errorf("%w: no place came free in time", ErrOverloaded)
	}
}

// begin takes a place, makes the caller wait, or refuses it; the waiter is nil if a place was taken.
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

// entered returns a function that gives back the place that was just taken. Only the first call has an effect.
func (l *Limiter) entered() func() {
	began := time.Now()
	return sync.OnceFunc(func() {
		l.mu.Lock()
		l.pace.add(time.Since(began))
		l.mu.Unlock()
		l.leave()
	})
}

// leave gives a place to the next waiter in turn for which it is not too late.
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

// next removes the next waiter from its line; nil if nobody waits.
func (l *Limiter) next() *waiter {
	takes, gives := &l.lines[Take], &l.lines[GiveBack]
	if gives.n > 0 && (takes.n == 0 || l.row < inARow && !failpoint.Broken("releases")) {
		l.row++
		return gives.next()
	}
	l.row = 0
	return takes.next()
}

// Busy returns the number of places that are taken, and that of waiting callers.
func (l *Limiter) Busy() (taken, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for class := range l.lines {
		waiting += l.lines[class].n
	}
	return l.taken, waiting
}
