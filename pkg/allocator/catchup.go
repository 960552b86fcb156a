package allocator

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

const (
	// catchUpTime bounds how long a refusal waits for the watch.
	catchUpTime = time.Second
	// catchUpQuiet is the time without an event after which a watch counts as complete. It cannot wait for the newest
	// version: that may be the version of another kind's object, which this watch never delivers.
	catchUpQuiet = 250 * time.Millisecond
)

// catchUps waits until the watch has caught up with the API server. One wait is shared by all requests that come before
// it begins, and there is one at a time: however many requests are refused, they cost some lists of one object a
// second.
type catchUps struct {
	feed   watched
	leases *store.Client
	turn   chan struct{} // holds one value during a wait
	mu     sync.Mutex
	next   *catchUp
}

// watched tells how far the watch has come: the feed of the index does.
type watched interface {
	Seen() uint64
	WaitSeen(ctx context.Context, version uint64) error
}

type catchUp struct {
	done chan struct{}
	err  error
}

// wait returns when the index has what was stored before the call, when the watch has delivered nothing for
// catchUpQuiet, or after catchUpTime at most. The error says that the newest version could not be read.
func (c *catchUps) wait(ctx context.Context) error {
	c.mu.Lock()
	u := c.next
	if u == nil {
		u = &catchUp{done: make(chan struct{})}
		c.next = u
		go c.run(u)
	}
	c.mu.Unlock()
	select {
	case <-u.done:
		return u.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *catchUps) run(u *catchUp) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	c.mu.Lock()
	c.next = nil // who comes from now on may know of later writes
	c.mu.Unlock()
	u.err = c.catchUp()
	close(u.done)
}

func (c *catchUps) catchUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), catchUpTime)
	defer cancel()
	newest, err := c.leases.Newest(ctx)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		seen := c.feed.Seen()
		quiet, end := context.WithTimeout(ctx, catchUpQuiet)
		err := c.feed.WaitSeen(quiet, newest)
		end()
		if err == nil || c.feed.Seen() == seen {
			break
		}
	}
	return nil
}

// sure returns a refusal that holds although the picture may have been old, and errStale where something was delivered
// since: seen is what had been delivered before the decision. A client takes the refusal of a full pool for the last
// word, and its container may hold an address that another replica gave it and the watch has not delivered yet.
func (a *Adder) sure(ctx context.Context, refused error, seen uint64) error {
	refusal, ok := errors.AsType[*ipam.Refusal](refused)
	if !ok || refusal.Reason != ipam.ReasonPoolExhausted {
		return refused
	}
	switch err := a.catchUps.wait(ctx); {
	case ctx.Err() != nil:
		return unavailable(ctx.Err())
	case err != nil:
		return readFailed(err)
	case a.engine.index.Feed.Seen() > seen:
		return errStale
	}
	return refused
}
