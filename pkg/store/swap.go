package store

import (
	"context"
	"errors"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// MaxConflicts bounds the number of times that one change is repeated after another writer was faster.
const MaxConflicts = 64

// ErrContended means that nothing was stored, because other writers were faster too often.
var ErrContended = errors.New("other writers were faster too often")

// ReadError means that the object could not be read after a conflict. The write of the caller was not stored.
type ReadError struct{ Err error }

func (e *ReadError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the read.
func (e *ReadError) Unwrap() error { return e.Err }

// ExpiredError means that the caller's time ended between a conflict and the next write. Nothing was stored.
type ExpiredError struct{ Err error }

func (e *ExpiredError) Error() string { return e.Err.Error() }

// Unwrap returns the context's error.
func (e *ExpiredError) Unwrap() error { return e.Err }

// IgnoreConflict returns nil for a conflict, for writers that leave an address to the faster writer.
func IgnoreConflict(err error) error {
	if errors.Is(err, ErrConflict) {
		return nil
	}
	return err
}

// Swap replaces a lease in the state that the index shows. After a conflict it refetches the object, so that a new
// decision from the index is based on the actual state. The error is then ErrConflict, or a *ReadError if the object
// could not be read. Otherwise it is the error of the write: ErrUnknown, or the reason why nothing was stored. The
// client must have an index.
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

// Update changes a lease by compare-and-swap without an index. Such a client does not notice a restore of the store: a
// lease that it read earlier may stand for another write with the same version. Therefore Update reads the lease first,
// and continues with the result only if it equals the earlier one or again agrees. change decides what the lease
// becomes, and whether it changes at all. After a conflict, Update reads the lease, whose version is 0 if it has no
// object, and repeats if again agrees. now is the lease at the end, and stored reports whether the change was stored.
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

// sameWrite reports whether two leases come from the same write of an object, even if they are seen from different
// attachments of a migrating virtual machine.
func sameWrite(a, b lease.Lease) bool {
	return a.Version == b.Version && a.State == b.State && a.Updated.Equal(b.Updated) &&
		(a.FromSecond != b.FromSecond || a.ContainerID == b.ContainerID && a.PodUID == b.PodUID && a.Owner == b.Owner)
}
