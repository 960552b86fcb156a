package store

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answering is since when the API server has left writes without an answer from which it is known what became of them.
type answering struct {
	mu      sync.Mutex
	flying  int       // writes on their way
	unknown int       // writes of unknown outcome since an answer came
	since   time.Time // of the first that has no answer
	last    time.Time // when a write ended with an unknown outcome last
	read    time.Time // when a read was answered last
}

// unknownFor is how long a write of unknown outcome counts when no other follows.
const unknownFor = 15 * time.Second

func (a *answering) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.flying == 0 && (a.unknown == 0 || time.Since(a.last) > unknownFor) {
		a.since, a.unknown = time.Now(), 0
	}
	a.flying++
}

// answered records that the API server answers.
func (a *answering) answered() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since, a.unknown = time.Now(), 0
}

func (a *answering) end(err error) {
	if !errors.Is(err, ErrUnknown) {
		a.answered()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.flying--
	if errors.Is(err, ErrUnknown) {
		a.unknown++
		a.last = time.Now()
	}
}

// Unanswered returns for how long no write has had an answer from which it is known what became of it, while some are
// on their way or have just ended so; 0 when all is well.
func (c *Client) Unanswered() time.Duration {
	a := &c.counts.answering
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.flying > 0:
		return time.Since(a.since)
	case a.unknown == 0 || time.Since(a.last) > unknownFor:
		return 0
	}
	return a.last.Sub(a.since) // while nothing is sent, nothing can be answered
}

// nobody returns an address that no object is named after.
func nobody() netip.Addr { return netip.IPv4Unspecified() }

// Probe returns why the API server does not answer reads; nil when it does. It asks only when nothing was read within a
// time. One that is too busy has answered: nobody is helped by another leader.
func (c *Client) Probe(ctx context.Context, within time.Duration) error {
	a := &c.counts.answering
	a.mu.Lock()
	fresh := !a.read.IsZero() && time.Since(a.read) < within
	a.mu.Unlock()
	if fresh {
		return nil
	}
	if _, err := c.ask(ctx, c.lease(nobody()).MaxRetries(0)); errors.Is(err, ErrUnavailable) &&
		!apierrors.IsTooManyRequests(err) {
		return err
	}
	return nil
}

// reads records how a read ended.
func (a *answering) reads(err error) {
	if err != nil && !apierrors.IsNotFound(err) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.read = time.Now()
}
