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
	// firstPause and lastPause bound how long a replica that did not answer is left alone: twice as long each time.
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
	// tokenPause is how long after a 401 a replica is asked again, at first: the token file may be renewed just now.
	tokenPause = 500 * time.Millisecond
	// refusalPause is how long after a refusal that can pass the same is asked again, at first.
	refusalPause = 500 * time.Millisecond
	// refusalPatience is for how long a refusal that can pass is asked again. The runtime does so, too, and shows the
	// refusal meanwhile.
	refusalPatience = 3 * time.Second
)

// schedule says which replica is asked next, and when.
type schedule struct {
	turns map[string]*turn
	// preferred is the URL that is asked first; empty for any.
	preferred string
	// offset is where the order begins otherwise, so that nodes do not all ask the same replica.
	offset int
	// refusals counts the refusals that can pass, and refusedAt is when the first one came.
	refusals  int
	refusedAt time.Time
}

// turn is what is known of one replica.
type turn struct {
	// from is when it may be asked.
	from     time.Time
	failures int
	failed   error
}

func newSchedule(preferred string) *schedule {
	return &schedule{turns: map[string]*turn{}, preferred: preferred, offset: rand.IntN(maxOffset)}
}

// maxOffset is larger than the number of replicas.
const maxOffset = 1 << 16

// next returns the replica whose turn is first, and when it is. The list may be another one each time.
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

// note records what became of a try at a time.
func (s *schedule) note(t *turn, o outcome, now time.Time) {
	pause := o.wait
	if pause == 0 {
		first := firstPause
		if errors.Is(o.failed, ErrToken) {
			first = tokenPause
		}
		pause = min(first<<min(t.failures, 8), lastPause)
		pause += rand.N(pause / 4) // those who began together are not to come back together
	}
	t.failures++
	if t.failed == nil || !errors.Is(o.failed, context.DeadlineExceeded) { // that the time is over explains less
		t.failed = o.failed
	}
	t.from = now.Add(pause)
	if o.everywhere {
		s.pause(t.from)
	}
}

// pause keeps all replicas from being asked before a time.
func (s *schedule) pause(from time.Time) {
	for _, t := range s.turns {
		if t.from.Before(from) {
			t.from = from
		}
	}
}

// patient reports whether a refusal that can pass is asked again, and has no replica asked before that.
func (s *schedule) patient(now time.Time) bool {
	if s.refusals == 0 {
		s.refusedAt = now
	}
	from := now.Add(refusalPause << s.refusals)
	s.refusals++
	s.pause(from)
	return from.Sub(s.refusedAt) <= refusalPatience
}

// givenUp returns the error of a call whose time is over: the last answer, if it was one, or what became of each
// replica.
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

// tryError is what became of a try at one replica.
type tryError struct {
	url string
	err error
}

func (e *tryError) Error() string { return e.url + ": " + e.err.Error() }
func (e *tryError) Unwrap() error { return e.err }
