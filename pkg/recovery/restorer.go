package recovery

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

const (
	// parallel is the number of leases that are restored at once.
	parallel = 16
	// minBackoff and maxBackoff are how long an address waits after a failure. It stays held meanwhile.
	minBackoff, maxBackoff = 50 * time.Millisecond, 5 * time.Second
)

// Restorer creates the object of an address again if it was lost while the address was held. The index still has the
// whole lease, so no pod is read: after a restore of the store to an older state, newer pods run without objects. If
// the holder is really gone, the garbage collection takes the address back. The restorer runs on every replica: the
// first write wins. It also removes objects that were deleted by hand while they were held, after their release.
type Restorer struct {
	index  *index.Index
	leases *store.Client
	log    *slog.Logger
	// restored is called for every restored lease.
	restored func(l lease.Lease)
	queue    workqueue.TypedRateLimitingInterface[netip.Addr]
}

// NewRestorer returns the restorer of an index. Call it before the index is fed.
func NewRestorer(index *index.Index, leases *store.Client, log *slog.Logger, restored func(l lease.Lease)) *Restorer {
	r := &Restorer{
		index: index, leases: leases, log: log, restored: restored,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[netip.Addr](minBackoff, maxBackoff)),
	}
	index.Feed.Subscribe(r.changed)
	return r
}

// changed handles a change of the index. It queues the address if its object was lost, or was deleted by hand while the
// address was held or kept.
func (r *Restorer) changed(_, l lease.Lease) {
	if _, lost := r.index.Leases.Missing(l.Addr); lost || deletedAndFree(l) || deletedAndKept(l) {
		r.queue.Add(l.Addr)
	}
}

// deletedAndFree reports whether the object of an address was deleted while the address was held, and the address is
// now released.
func deletedAndFree(l lease.Lease) bool {
	return l.Deleting && l.HeldFinalizer && l.State == lease.Available
}

// deletedAndKept reports whether the object of an address that a claim keeps was deleted by hand. Nobody could get the
// address while the object exists, so the object is removed, and created again like a lost one.
func deletedAndKept(l lease.Lease) bool {
	return l.Deleting && l.HeldFinalizer && l.State == lease.Reserved && l.KeptOnRelease()
}

// Run works until the context ends.
func (r *Restorer) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for {
				addr, ended := r.queue.Get()
				if ended {
					return
				}
				r.process(ctx, addr)
			}
		})
	}
	<-ctx.Done()
	r.queue.ShutDown()
	workers.Wait()
	return nil
}

func (r *Restorer) process(ctx context.Context, addr netip.Addr) {
	defer r.queue.Done(addr)
	limit, cancel := context.WithTimeout(ctx, store.WriteTimeout)
	defer cancel()
	if err := r.sync(limit, addr); err != nil && ctx.Err() == nil {
		if r.queue.NumRequeues(addr) == 0 {
			r.log.Warn("could not settle an address whose object was deleted; it stays held", "address", addr.String(),
				"error", err)
		}
		r.queue.AddRateLimited(addr)
		return
	}
	r.queue.Forget(addr)
}

// sync restores or removes the object of one address. After an error it must be called again.
func (r *Restorer) sync(ctx context.Context, addr netip.Addr) error {
	current, _ := r.index.Leases.Get(addr)
	l, lost := r.index.Leases.Missing(addr)
	if !lost && deletedAndFree(current) {
		next, _ := lease.Release(current, r.leases.Now(), lease.Change{})
		_, err := r.leases.Write(ctx, next)
		return store.IgnoreConflict(err) // the change of the index brings it back where there is more to do
	}
	if deletedAndKept(current) {
		current.HeldFinalizer = false
		_, err := r.leases.Write(ctx, current)
		return store.IgnoreConflict(err)
	}
	if !lost || failpoint.Broken("restore") {
		return nil
	}
	stored, err := r.leases.Swap(ctx, current, lease.Restore(l, current))
	if _, lost := r.index.Leases.Missing(addr); !lost && errors.Is(err, store.ErrConflict) {
		return nil // another replica was faster, as a rule
	}
	if err != nil {
		return err
	}
	r.log.Warn("restored an address that somebody has: its object had gone",
		"address", addr.String(), "holder", l.Who(), "container", l.ContainerID, "version", stored.Version)
	r.restored(l)
	return nil
}
