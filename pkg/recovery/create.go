package recovery

import (
	"context"
	"errors"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Create stores a lease of a plan. It does nothing (created false) where somebody has the address by now, or
// had it since the plan was made. now is the address as it is then.
func Create(ctx context.Context, leases *store.Client, l ipam.Lease) (now ipam.Lease, created bool, err error) {
	for {
		now, err = leases.Write(ctx, l)
		switch {
		case err == nil:
			return now, true, nil
		case !errors.Is(err, store.ErrConflict):
			return now, false, err
		}
		now, err = leases.Get(ctx, l.Addr)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return now, false, err
		}
		if now.State != ipam.Available || now.Deleting || now.Updated.After(l.Updated) || ctx.Err() != nil {
			return now, false, ctx.Err()
		}
		// The object was made anew, by a controller that knew of no holder.
		if now.History != "" {
			l.History = now.History
		}
		l.Version, l.Epoch, l.Foreign = now.Version, now.Epoch, now.Foreign
	}
}
