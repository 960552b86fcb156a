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
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

const (
	// parallel is how many leases are made again at once.
	parallel = 16
	// minBackoff and maxBackoff are how long an address waits after a failure. It stays held meanwhile.
	minBackoff, maxBackoff = 50 * time.Millisecond, 5 * time.Second
)

// Restorer makes the object of an address again where the object went while the address was held. All of the lease is
// still in the index, so it asks for no pod. After the API server's store was put back to an older state, newer pods
// run although they have no objects; a lease whose holder is gone indeed is left to the garbage collection. The
// restorer runs on every replica: the first write wins. It also lets the objects go that were deleted by hand while
// they were held, once they are released.
type Restorer struct {
	index  *ipam.Index
	leases *store.Client
	log    *slog.Logger
	// restored is called for every lease that was made again.
	restored func(l lease.Lease)
	queue    workqueue.TypedRateLimitingInterface[netip.Addr]
}

// NewRestorer returns the restorer of an index. Call it before the index is fed.
func NewRestorer(index *ipam.Index, leases *store.Client, log *slog.Logger, restored func(l lease.Lease)) *Restorer {
	r := &Restorer{
		index: index, leases: leases, log: log, restored: restored,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[netip.Addr](minBackoff,
			maxBackoff)),
	}
	index.Feed.Subscribe(r.changed)
	return r
}

// changed handles a change of the index. It queues the address when its object was lost, or was deleted by hand
// although the address is held or kept.
func (r *Restorer) changed(_, l lease.Lease) {
	if _, lost := r.index.Leases.Missing(l.Addr); lost || deletedAndFree(l) || deletedAndKept(l) {
		r.queue.Add(l.Addr)
	}
}

// deletedAndFree reports whether the object of an address was deleted while it was held, and the address is released
// now.
func deletedAndFree(l lease.Lease) bool {
	return l.Deleting && l.HeldFinalizer && l.State == lease.Available
}

// deletedAndKept reports whether the object of an address that a claim keeps was deleted by hand. Nobody could get the
// address as long as the object is there; it is let go, and made again like one that was lost.
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
			r.log.Warn("could not settle an address whose object was deleted; it stays held", "address", addr.String(), "error",
				err)
		}
		r.queue.AddRateLimited(addr)
		return
	}
	r.queue.Forget(addr)
}

// sync brings the object of one address in order. After an error it is to be called again.
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
