package recovery

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Create stores a lease of a plan. It does nothing (created is false) where somebody has the address by now, or had it
// since the plan was made. now is the address as it is then.
func Create(ctx context.Context, leases *store.Client, l lease.Lease) (now lease.Lease, created bool, err error) {
	change := func(now lease.Lease) (lease.Lease, bool) {
		if now.History != "" {
			l.History = now.History
		}
		l.Version, l.Epoch, l.Foreign = now.Version, now.Epoch, now.Foreign
		return l, true
	}
	// The object may be made anew, by a controller that knew of no holder.
	return leases.Update(ctx, l, change, func(now lease.Lease) bool {
		return now.State == lease.Available && !now.Deleting && !now.Updated.After(l.Updated)
	})
}
