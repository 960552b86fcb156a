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

// enter waits for a place among the writes in flight, and returns how to give it back.
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

// onceDelivered returns how to give a place back once the watch has delivered a write, or after so long that it does
// not matter. An API server that is sent as many writes as it takes has no time left for its watches: these fall behind
// by more and more, and who asked for an address waits for the confirmation until he has gone, however fast it was
// stored.
func (c *Client) onceDelivered(version uint64, leave func()) func() {
	if failpoint.Broken("lag") {
		return leave
	}
	return func() {
		forget := c.index.Feed.WhenSeen(version, func(error) { leave() })
		time.AfterFunc(c.lag, func() { forget(); leave() })
	}
}

// patient hides the deadline of a context. A process without an index, such as a command line, has nobody else to make
// room for: it tries until its time is over, and then the reason of the last try is what its user wants to know.
type patient struct{ context.Context }

// Deadline reports none.
func (patient) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// classOf returns the class of a write. One that leaves an object without a holder gives an address back, or touches
// what nobody has.
func classOf(l lease.Lease) limiter.Class {
	if l.Version != 0 && l.State != lease.Active {
		return limiter.GiveBack
	}
	return limiter.Take
}

// send sends a write and says what became of it. guard is asked before each attempt, and its error returned.
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

// persist sends a write once, and again only when the API server turned it away unseen, for as long as the
// caller waits. (client-go would also send it again after an error of the server with Retry-After: the
// first may have been stored, and the conflict with it would pass for somebody else's.) It waits at least as
// long as the API server says, longer each time, and a random part more: those that were turned away together
// do not come back together. Meanwhile it keeps its place, so an API server that is slow gets fewer writes.
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

// writeError returns the error of a write by what became of it. That nothing was stored is known by an answer of the
// API server alone, or by a connection that never was.
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
