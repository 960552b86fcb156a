package store

import (
	"context"
	"errors"
	"net/netip"
	"time"
)

// PutBack records what another replica has seen: the store had a later version than it has now. The leases are listed
// anew.
func (c *Client) PutBack(seen, now uint64) error { return c.restored(behindSeen, now, seen) }

// Forgotten reports whether the API server has an address at an earlier version than one that it had: then its store
// was put back to an older state, and the leases are listed anew. Whoever says so has shown it. As no replica has
// noticed, none may know who has what was given since: nothing new is given for ipam.OrphanTime. An object that is not
// there was forgotten if the store has not come to that version again; it may just as well be deleted since.
func (c *Client) Forgotten(ctx context.Context, a netip.Addr, version uint64) (bool, error) {
	l, err := c.Get(ctx, a)
	if errors.Is(err, ErrNotFound) {
		l.Version, err = c.Newest(ctx)
	}
	if err != nil || l.Version >= version {
		return false, err
	}
	c.counts.forgetful.Store(true)
	return true, c.restored("the API server has version %d of %s, which was given at version %d", l.Version, a, version)
}

// Learn records when another replica noticed that the store was put back.
func (c *Client) Learn(at time.Time) {
	if at.After(c.Noticed()) {
		c.counts.noticed.Store(&at)
	}
}

// Noticed returns when it was noticed last that the store was put back, by the API server's time; zero for never.
func (c *Client) Noticed() time.Time {
	if at := c.counts.noticed.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// Follows reports whether a watch feeds the index, so that what becomes of the store is noticed.
func (c *Client) Follows() bool { return c.watched != nil && c.watched() }
