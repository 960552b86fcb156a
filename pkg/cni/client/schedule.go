package client

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"slices"
	"time"
)

const (
	// firstPause and lastPause bound the pause before a replica that did not answer is asked again. Each pause is twice
	// as long as the one before.
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
	// tokenPause is the first pause before a replica is asked again after a 401: the token file may just be renewed.
	tokenPause = 500 * time.Millisecond
	// refusalPause is the first pause before the same request is repeated after a temporary refusal.
	refusalPause = 500 * time.Millisecond
	// refusalPatience is the time during which a request is repeated after a temporary refusal. The runtime also
	// repeats it, and meanwhile shows the refusal.
	refusalPatience = 3 * time.Second
)

// schedule decides which replica is asked next, and when.
type schedule struct {
	turns map[string]*turn
	// preferred is the URL of the replica that is asked first; empty for any.
	preferred string
	// offset is the position at which the order otherwise begins, so that not all nodes ask the same replica.
	offset int
	// refusals is the number of temporary refusals, and refusedAt the time of the first one.
	refusals  int
	refusedAt time.Time
}

// turn has the state of one replica.
type turn struct {
	// from is the time from which on the replica may be asked.
	from     time.Time
	failures int
	failed   error
}

func newSchedule(preferred string) *schedule {
	return &schedule{turns: map[string]*turn{}, preferred: preferred, offset: rand.IntN(maxOffset)}
}

// maxOffset is larger than the number of replicas.
const maxOffset = 1 << 16

// next returns the replica that may be asked first, and its turn. The list may change from call to call.
func (s *schedule) next(replicas []*url.URL) (*url.URL, *turn) {
	start := s.offset % len(replicas)
	if i := slices.IndexFunc(replicas, func(u *url.URL) bool { return u.String() == s.preferred }); i >= 0 {
		start = i
	}
	var first *url.URL
	var when *turn
	for i := range replicas {
		u := replicas[(start+i)%len(replicas)]
		t := s.turns[u.String()]
		if t == nil {
			t = &turn{}
			s.turns[u.String()] = t
		}
		if first == nil || t.from.Before(when.from) {
			first, when = u, t
		}
	}
	return first, when
}

// note records the outcome of a try and its time.
func (s *schedule) note(t *turn, o outcome, now time.Time) {
	pause := o.wait
	if pause == 0 {
		first := firstPause
		if errors.Is(o.failed, ErrToken) {
			first = tokenPause
		}
		pause = min(first<<min(t.failures, 8), lastPause)
		pause += rand.N(pause / 4) // callers that began together should not return together
	}
	t.failures++
	if t.failed == nil || !errors.Is(o.failed, context.DeadlineExceeded) { // an expired deadline explains less
		t.failed = o.failed
	}
	t.from = now.Add(pause)
	if o.everywhere {
		s.pause(t.from)
	}
}

// pause prevents requests to all replicas before a time.
func (s *schedule) pause(from time.Time) {
	for _, t := range s.turns {
		if t.from.Before(from) {
			t.from = from
		}
	}
}

// patient reports whether a temporarily refused request is repeated; if so, it delays requests to all replicas until
// then.
func (s *schedule) patient(now time.Time) bool {
	if s.refusals == 0 {
		s.refusedAt = now
	}
	from := now.Add(refusalPause << s.refusals)
	s.refusals++
	s.pause(from)
	return from.Sub(s.refusedAt) <= refusalPatience
}

// givenUp returns the error of a call whose time is over: the last refusal, or else the error of each replica.
func (s *schedule) givenUp(last *Refusal) error {
	if last != nil {
		return last
	}
	var all []error
	for u, t := range s.turns {
		if t.failed != nil {
			all = append(all, &tryError{u, t.failed})
		}
	}
	slices.SortFunc(all, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return &Unanswered{Why: all}
}

// tryError is the error of a try at one replica.
type tryError struct {
	url string
	err error
}

func (e *tryError) Error() string { return e.url + ": " + e.err.Error() }
func (e *tryError) Unwrap() error { return e.err }
