package allocator

import (
	"context"
	"errors"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// ReserveLease sets a free address aside by compare-and-swap; l is the address as it was read, of version 0
// where it has no object, and p what it takes from its pool. When somebody else changed it in the meantime
// it reads it again. The answer is the address as it is then: reserved is false where somebody holds it,
// where it is reserved already, and where its object is being deleted.
func ReserveLease(ctx context.Context, leases *store.Client, l ipam.Lease, p ipam.Params, c ipam.Change) (now ipam.Lease, reserved bool, err error) {
	for range maxAttempts {
		if err := ctx.Err(); err != nil {
			return l, false, unavailable(err)
		}
		next, ok := ipam.Reserve(l, p, leases.Now(), c)
		if !ok {
			return l, false, nil
		}
		stored, err := leases.Write(ctx, next)
		switch {
		case err == nil:
			return stored, true, nil
		case errors.Is(err, store.ErrUnknown):
			return l, false, unknown(l.Addr, err)
		case !errors.Is(err, store.ErrConflict):
			return l, false, writeFailed(err)
		}
		l, err = leases.Get(ctx, l.Addr)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return l, false, readFailed(err)
		}
	}
	return l, false, ipam.Refuse(ipam.ReasonUnavailable, "other writers of address %s were faster %d times in a row", l.Addr, maxAttempts).
		WithHint("ask again")
}
