package store

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// PutBack records that, according to another replica, the store had a later version than it has now. The leases are
// listed again.
func (c *Client) PutBack(seen, now uint64) error { return c.restored(behindSeen, now, seen) }

// Forgotten reports whether the API server has an address at an older version than one that it had: then its store was
// restored to an older state, and the leases are listed again. The caller must have proven the later version. Because
// no replica has noticed the restore, no replica may know the holders of newer leases: nothing new is allocated for
// ipam.OrphanTime. An address without an object counts as forgotten only if the store has not reached that version
// again; otherwise it may have been deleted since.
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

// Learn records the time at which another replica noticed a restore of the store.
func (c *Client) Learn(at time.Time) {
	if at.After(c.Noticed()) {
		c.counts.noticed.Store(&at)
	}
}

// Noticed returns the time at which a restore of the store was last noticed, by the API server's clock; zero for never.
func (c *Client) Noticed() time.Time {
	if at := c.counts.noticed.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// Follows reports whether a watch feeds the index, so that a restore of the store is noticed.
func (c *Client) Follows() bool { return c.watched != nil && c.watched() }

// Newest reads the version of the API server's newest state. Every write that was answered before has that version or a
// lower one. It costs the API server a list of one object.
func (c *Client) Newest(ctx context.Context) (uint64, error) {
	meta, err := c.page(ctx, c.lists().MaxRetries(0), 1, nil, func(lease.Lease) error { return nil })
	return parseVersion(meta.ResourceVersion), err
}
