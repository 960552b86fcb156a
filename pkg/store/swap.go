package store

import (
	"context"
	"errors"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// MaxConflicts bounds how often one change reads and writes again after another writer was faster.
const MaxConflicts = 64

// ErrContended reports that nothing was stored, because other writers were faster too often.
var ErrContended = errors.New("other writers were faster too often")

// ReadError reports that the object could not be read after a conflict. The write of the caller was not stored.
type ReadError struct{ Err error }

func (e *ReadError) Error() string { return e.Err.Error() }

// Unwrap returns why it could not be read.
func (e *ReadError) Unwrap() error { return e.Err }

// ExpiredError reports that the caller's time ended between a conflict and the next write. Nothing was stored.
type ExpiredError struct{ Err error }

func (e *ExpiredError) Error() string { return e.Err.Error() }

// Unwrap returns the context's error.
func (e *ExpiredError) Unwrap() error { return e.Err }

// IgnoreConflict drops a conflict, for writers who leave an address to whoever was faster.
func IgnoreConflict(err error) error {
	if errors.Is(err, ErrConflict) {
		return nil
	}
	return err
}

// Swap replaces a lease as the index shows it by the next one. After a conflict it refetches the object, so that
// whoever decides again from the index decides on what is there. The error is ErrConflict then, a *ReadError where the
// object could not be read, or that of the write: ErrUnknown, or why nothing was stored. The client has an index.
func (c *Client) Swap(ctx context.Context, believed, next lease.Lease) (lease.Lease, error) {
	stored, err := c.Write(ctx, next)
	if !errors.Is(err, ErrConflict) {
		return stored, err
	}
	if err = c.Refetch(ctx, believed); !errors.Is(err, ErrConflict) {
		err = &ReadError{err}
	}
	return stored, err
}

// Update changes a lease by compare-and-swap, and needs no index. A client without one has nothing that notices a
// restore of the store: what it read a while ago may be another write of the same version. So it reads the lease first,
// and goes on with what is there only if that is what it read, or again agrees. change decides what the lease becomes,
// and whether it changes at all. After a conflict Update reads the lease, whose version is 0 where it has no object,
// and begins again if again agrees. now is the lease as it is in the end, and stored reports whether the change was.
// The error is that of the write, a *ReadError, an *ExpiredError, or ErrContended after MaxConflicts.
func (c *Client) Update(
	ctx context.Context, l lease.Lease, change func(lease.Lease) (lease.Lease, bool), again func(lease.Lease) bool,
) (now lease.Lease, stored bool, err error) {
	if _, changes := change(l); changes && c.index == nil && l.Version != 0 {
		switch live, err := c.Get(ctx, l.Addr); {
		case err != nil && !errors.Is(err, ErrNotFound):
			return l, false, &ReadError{err}
		case !sameWrite(live, l):
			if l = live; !again(l) {
				return l, false, nil
			}
		}
		if err := ctx.Err(); err != nil {
			return l, false, &ExpiredError{err}
		}
	}
	for range MaxConflicts {
		next, changed := change(l)
		if !changed {
			return l, false, nil
		}
		now, err = c.Write(ctx, next)
		if !errors.Is(err, ErrConflict) {
			return now, err == nil, err
		}
		if l, err = c.Get(ctx, l.Addr); err != nil && !errors.Is(err, ErrNotFound) {
			return l, false, &ReadError{err}
		}
		if !again(l) {
			return l, false, nil
		}
		if err := ctx.Err(); err != nil {
			return l, false, &ExpiredError{err}
		}
	}
	return l, false, ErrContended
}

// sameWrite reports whether two leases were read from one write of an object, also of one that a virtual machine's two
// pods are told apart in.
func sameWrite(a, b lease.Lease) bool {
	return a.Version == b.Version && a.State == b.State && a.Updated.Equal(b.Updated) &&
		(a.FromSecond != b.FromSecond || a.ContainerID == b.ContainerID && a.PodUID == b.PodUID && a.Owner == b.Owner)
}
