package store

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answering records from when on the outcome of every write has been unknown because the API server did not answer.
type answering struct {
	mu      sync.Mutex
	flying  int       // writes in flight
	unknown int       // writes of unknown outcome since the last answer
	since   time.Time // start of the first write without an answer
	last    time.Time // end of the last write with unknown outcome
	read    time.Time // time of the last answered read
}

// unknownFor is the time for which a write of unknown outcome counts if no other write follows.
const unknownFor = 15 * time.Second

func (a *answering) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.flying == 0 && (a.unknown == 0 || time.Since(a.last) > unknownFor) {
		a.since, a.unknown = time.Now(), 0
	}
	a.flying++
}

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

// Unanswered returns the time for which no write has had an answer with its outcome, while some are in flight or have
// just ended without one; 0 if all is well.
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
	return a.last.Sub(a.since) // nothing is sent, so nothing can be answered
}

// nobody returns an address that is the name of no object.
func nobody() netip.Addr { return netip.IPv4Unspecified() }

// Probe returns the reason why the API server does not answer reads; nil if it does. It sends a request only if nothing
// was read within a time. An answer that the API server is too busy counts as an answer, because another leader would
// not help.
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

// reads records the outcome of a read.
func (a *answering) reads(err error) {
	if err != nil && !apierrors.IsNotFound(err) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.read = time.Now()
}
