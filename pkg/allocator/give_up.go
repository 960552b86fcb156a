package allocator

import (
	"context"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// ReleaseLease makes the holder of an address give it up by compare-and-swap. The address is Available then, or
// Reserved for the claim that keeps it. Of two attachments those end for which isHolder returns true. If somebody else
// changed it in the meantime, ReleaseLease reads it again, and leaves it alone if isHolder returns false: then released
// is false. c goes into the history of the address; it is zero for a holder that gives its address up.
func ReleaseLease(
	ctx context.Context, leases *store.Client, l lease.Lease, c lease.Change, isHolder func(lease.Lease) bool,
) (released bool, err error) {
	return giveUp(ctx, leases, l, c, lease.Release, isHolder)
}

// FreeLease does what ReleaseLease does, for an address that no claim keeps from then on.
func FreeLease(
	ctx context.Context, leases *store.Client, l lease.Lease, c lease.Change, isHolder func(lease.Lease) bool,
) (released bool, err error) {
	return giveUp(ctx, leases, l, c, lease.Free, isHolder)
}

// giveUp changes a lease until it is stored, or the lease is nobody's any more, or isHolder returns false for all who
// have it.
func giveUp(
	ctx context.Context, leases *store.Client, l lease.Lease, c lease.Change,
	end func(lease.Lease, time.Time, lease.Change) (lease.Lease, bool), isHolder func(lease.Lease) bool,
) (released bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, unavailable(err)
	}
	stored, released, err := leases.Update(ctx, l,
		func(l lease.Lease) (lease.Lease, bool) { return lease.EndWhere(l, isHolder, leases.Now(), c, end) },
		func(now lease.Lease) bool {
			_, some := now.From(isHolder)
			return now.Version != 0 && some
		})
	if err != nil {
		return false, swapFailed(l.Addr, err)
	}
	if released {
		letGo(ctx, leases, stored)
	}
	return released, nil
}

// letGo takes the finalizer off an object that was deleted while it was held, once it is free. Where that
// fails the controller does it: the address is free all the same.
func letGo(ctx context.Context, leases *store.Client, l lease.Lease) {
	if l.State != lease.Available {
		return
	}
	if next, changed := lease.Free(l, leases.Now(), lease.Change{}); changed {
		_, _ = leases.Write(ctx, next)
	}
}

// sameAsk returns what reports whether a lease is still what the same request of the same container took.
func sameAsk(l lease.Lease) (isHolder func(now lease.Lease) bool) {
	return func(now lease.Lease) bool {
		return now.State == lease.Active && now.ContainerID == l.ContainerID && now.Owner == l.Owner &&
			now.IfName == l.IfName && now.StartedAt.Equal(l.StartedAt)
	}
}
