package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/limiter"
)

// enter waits for a place among the writes in flight, and returns a function that gives it back.
func (c *Client) enter(ctx context.Context, class limiter.Class, pool string) (leave func(), err error) {
	end := c.Begin(ctx, StageQueue)
	if c.index == nil {
		leave, err = c.limiter.Enter(patient{ctx}, class, pool)
	} else {
		leave, err = c.limiter.Enter(ctx, class, pool)
	}
	end(err)
	switch {
	case errors.Is(err, ErrOverloaded):
		c.counts.refused.Add(1)
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return leave, nil
}

// onceDelivered returns a function that gives a place back after the watch has delivered a write, or after lag. An API
// server that gets as many writes as it accepts has no time left for its watches: these lag more and more, so that
// callers give up before the confirmation, however fast the write was stored.
func (c *Client) onceDelivered(version uint64, leave func()) func() {
	if failpoint.Broken("lag") {
		return leave
	}
	return func() {
		forget := c.index.Feed.WhenSeen(version, func(error) { leave() })
		time.AfterFunc(c.lag, func() { forget(); leave() })
	}
}

// patient hides the deadline of a context. A process without an index, such as a command line, has no other callers to
// make room for: it tries until its time is over, and then its user needs the reason of the last failure.
type patient struct{ context.Context }

// Deadline returns no deadline.
func (patient) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// classOf returns the class of a write. A write that leaves an object without a holder gives an address back, or
// changes an address that nobody has.
func classOf(l lease.Lease) limiter.Class {
	if l.Version != 0 && l.State != lease.Active {
		return limiter.GiveBack
	}
	return limiter.Take
}

// send sends a write and returns its outcome. guard is called before each attempt; if it returns an error, send returns
// that.
func (c *Client) send(caller, sending context.Context, write *rest.Request, guard func() error) ([]byte, error) {
	if err := guard(); err != nil {
		return nil, err
	}
	end := c.Begin(caller, StageWrite)
	c.counts.answering.begin()
	raw, err := c.persist(caller, sending, write, guard)
	c.counts.writes.Add(1)
	if err != nil {
		err = writeError(err)
		c.counts.failed(err)
	}
	c.counts.answering.end(err)
	end(err)
	return raw, err
}

// persist sends a write, and repeats it only if the API server rejected it before processing, for as long as the caller
// waits. (client-go would also repeat it after a server error with Retry-After, although the first write may have been
// stored; the conflict with it would then look like another writer's.) The wait is at least the requested one,
// increases each time, and has a random part, so that rejected writes do not return at the same time. Meanwhile the
// write keeps its place, so a slow API server gets fewer writes.
func (c *Client) persist(caller, sending context.Context, write *rest.Request, guard func() error) ([]byte, error) {
	const jitter = 0.5
	backoff := wait.Backoff{Duration: time.Second, Factor: 1.5, Jitter: jitter, Cap: 4 * time.Second,
		Steps: math.MaxInt32}
	write.MaxRetries(0)
	for {
		raw, err := answer(write.Do(sending))
		if !apierrors.IsTooManyRequests(err) {
			return raw, err
		}
		seconds, _ := apierrors.SuggestsClientDelay(err)
		delay := max(backoff.Step(), wait.Jitter(time.Duration(seconds)*time.Second, jitter))
		c.counts.throttle(delay)
		again := time.NewTimer(delay)
		select {
		case <-again.C:
			if err := guard(); err != nil {
				return nil, err
			}
			continue
		case <-caller.Done():
		case <-sending.Done():
		}
		again.Stop()
		return nil, err
	}
}

// writeError returns the error for the outcome of a write. Only an answer of the API server, or a connection that was
// never opened, proves that nothing was stored.
func writeError(err error) error {
	var op *net.OpError
	var asURL *url.Error
	switch {
	case errors.Is(err, ErrConflict), errors.Is(err, ErrUnavailable): // of the guard
		return err
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", ErrConflict, err)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err),
		apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return err
	case apierrors.IsTooManyRequests(err), errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case errors.As(err, &asURL) && asURL.Op == "parse":
		return err
	default:
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
}
