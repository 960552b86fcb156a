package recovery

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Create stores a lease of a plan. If somebody has the address by now, or had it since the plan was made, it does
// nothing, and created is false. now is the resulting state of the address.
func Create(ctx context.Context, leases *store.Client, l lease.Lease) (now lease.Lease, created bool, err error) {
	planned, history := l.Version, l.History
	change := func(now lease.Lease) (lease.Lease, bool) {
		l.History = history
		if now.Version != planned && now.History != "" {
			l.History = now.History
			if last, ok := history.Last(); ok && last.Until.Unix() == l.Updated.Unix() {
				l.History = now.History.Add(last) // what the plan adds
			}
		}
		l.Version, l.Epoch, l.Foreign = now.Version, now.Epoch, now.Foreign
		return l, true
	}
	// A controller that knew of no holder may have created the object again.
	return leases.Update(ctx, l, change, func(now lease.Lease) bool {
		return now.State == lease.Available && !now.Deleting && !now.Updated.After(l.Updated)
	})
}
