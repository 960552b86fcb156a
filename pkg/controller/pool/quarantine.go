package pool

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// quarantinesEvery is the interval in which the leader checks for quarantines that are over.
const quarantinesEvery = 5 * time.Second

// Reports has the addresses with a report of a conflict: the leases of the index do.
type Reports interface{ Contested() ipam.Contested }

// Quarantines frees addresses whose quarantine is over, by the API server's time.
type Quarantines struct {
	Reports Reports
	Leases  *store.Client
	// Event creates an event about the address of a lease.
	Event func(ctx context.Context, l lease.Lease, kind, reason, action, note string)
	Ready func() error
	Log   *slog.Logger
}

// Start checks the quarantines until the context ends, that is for a term of the leader.
func (q *Quarantines) Start(ctx context.Context) error {
	if !leadership.AwaitReady(ctx, q.Ready) {
		return nil
	}
	leadership.Every(ctx, quarantinesEvery, func() { q.pass(ctx) })
	return nil
}

// pass frees the addresses whose quarantine is over. If a write fails, the next pass repeats it.
func (q *Quarantines) pass(ctx context.Context) {
	for _, l := range q.Reports.Contested() {
		if !l.QuarantineOver(q.Leases.Now()) || ctx.Err() != nil {
			continue
		}
		freed, err := allocator.FreeLease(ctx, q.Leases, l, lease.Change{}, func(now lease.Lease) bool {
			return now.QuarantineOver(q.Leases.Now()) && now.Updated.Equal(l.Updated)
		})
		switch {
		case err != nil && ctx.Err() == nil:
			q.Log.Warn("the end of a quarantine cannot be written; it is tried again", "address", l.Addr.String(),
				"error", err)
		case freed:
			q.Log.Info("a quarantine is over", "address", l.Addr.String(), "mac", l.Conflict.MAC)
			q.Event(ctx, l, corev1.EventTypeNormal, v1.ReasonQuarantineEnded, "Free",
				"the quarantine of "+l.Addr.String()+" is over: "+l.Conflict.MAC+" answered for it")
		}
	}
}
