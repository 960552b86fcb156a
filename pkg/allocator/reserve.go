package allocator

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// ReserveLease sets a free address aside by compare-and-swap; l is the address as it was read, of version 0
// where it has no object, and p what it takes from its pool. When somebody else changed it in the meantime
// it reads it again. The answer is the address as it is then, or, with an error, as it was to be stored. reserved is
// false where somebody holds it, where it is reserved already, and where its object is being deleted.
func ReserveLease(
	ctx context.Context, leases *store.Client, l lease.Lease, p lease.Params, c lease.Change,
) (now lease.Lease, reserved bool, err error) {
	if err := ctx.Err(); err != nil {
		return l, false, unavailable(err)
	}
	reserve := func(l lease.Lease) (lease.Lease, bool) { return lease.Reserve(l, p, leases.Now(), c) }
	now, reserved, err = leases.Update(ctx, l, reserve, func(lease.Lease) bool { return true })
	if err != nil {
		err = swapFailed(l.Addr, err)
	}
	return now, reserved, err
}
