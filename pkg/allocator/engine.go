package allocator

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// errStale reports that the index showed something else than the API server has. The index has been mended: another
// attempt decides anew.
var errStale = errors.New("the index was behind")

// maxAttempts bounds how often one request looks again after another writer was faster.
const maxAttempts = 64

// engine has what the jobs share: the index, the store, the pods, the locks of requests, and the tombstones that DELs
// leave. It decides nothing.
//
// The lock discipline is the same for all jobs. A call holds the lock of one key from before it looks until it has an
// answer:
//
//	pod/NAMESPACE/NAME/IFNAME  an ADD, and the repair of duplicates. The collection of a network takes the lock if it
//	                           is free, and leaves the attachment alone if it is not.
//	owner/NAME/IFNAME          the same for an owner that is no pod
//	claim/NAMESPACE/NAME       a preallocation
//	conflicts                  a conflict report
//
// No call takes a second one, so that these locks need no order. A DEL takes none, as it must not wait for an ADD:
// compare-and-swap and the tombstone settle which of the two has the last word.
//
// The mutexes in the index, the tombstones, the wait queue and the like are taken under such a lock, or under none.
// Each guards one operation in memory: its owner reads no object, writes none, waits for nobody and takes no other
// lock, except that of the clock. The index calls its subscribers outside its own.
type engine struct {
	index      *index.Index
	leases     *store.Client
	pods       Pods
	locks      *locks
	tombstones *tombstones
	// releasing counts the DELs under way.
	releasing atomic.Int32
	log       *slog.Logger
}

// moment makes one of what a request says of itself; arrived is zero for the present. Nothing arrives in the future.
func (e *engine) moment(clock netip.Addr, told, arrived time.Time) moment {
	if now := e.leases.Now(); arrived.IsZero() || arrived.After(now) {
		arrived = now
	}
	return moment{clock, told, arrived}
}

// network returns the network of a pool.
func (e *engine) network(pool string) string {
	p, _ := e.index.Pools.Get(pool)
	return p.Network
}

// overtaken reports whether this replica knows of a DEL that came after the request began.
func (e *engine) overtaken(t *attempt) bool {
	return e.tombstones.overtook(lease.Holder{
		Host: t.Host, ContainerID: t.ContainerID, Owner: t.Owner, Namespace: t.Namespace, IfName: t.IfName,
	}, t.Network, t.began)
}

// parallelReads bounds how many leases of one attachment are read at once.
const parallelReads = 16

// unchanged makes sure that an attachment still has some leases, by one read of each, all at once. It returns them as
// they are stored, or errStale.
func (e *engine) unchanged(ctx context.Context, all ...lease.Lease) ([]lease.Lease, error) {
	now, errs := make([]lease.Lease, len(all)), make([]error, len(all))
	if len(all) == 1 {
		now[0], errs[0] = e.stillHeld(ctx, all[0])
		return now, errs[0]
	}
	var group errgroup.Group
	group.SetLimit(parallelReads)
	for i, l := range all {
		group.Go(func() error {
			now[i], errs[i] = e.stillHeld(ctx, l)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs: the first one in the order of the leases counts
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return now, nil
}

// stillHeld reads a lease that the index shows as an attachment's, and returns errStale if it is not.
func (e *engine) stillHeld(ctx context.Context, l lease.Lease) (lease.Lease, error) {
	live, err := e.leases.Get(ctx, l.Addr)
	switch {
	case errors.Is(err, store.ErrNotFound):
		e.index.Feed.WroteDelete(l.Addr, l.Version, l.Epoch)
		return l, errStale
	case err != nil:
		return l, readFailed(err)
	}
	if from, held := live.From(func(now lease.Lease) bool {
		return now.State == lease.Active && now.ContainerID == l.ContainerID && now.IfName == l.IfName &&
			now.SameAttachment(l.Holder)
	}); held {
		return from, nil
	}
	e.index.Feed.Wrote(live)
	return l, errStale
}

// releaseOvertaken releases a lease whose DEL had overtaken its ADD, unless a later ADD has it.
func (e *engine) releaseOvertaken(ctx context.Context, l lease.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, MaxRequestTime)
	defer cancel()
	released, err := ReleaseLease(ctx, e.leases, l, lease.Change{}, sameAsk(l))
	switch {
	case err != nil:
		e.log.Warn("could not release an address whose DEL had overtaken its ADD", "address", l.Addr.String(), "holder",
			l.Who(), "container", l.ContainerID, "error", err)
	case released:
		e.log.Info("released an address whose DEL had overtaken its ADD", "address", l.Addr.String(), "holder", l.Who(),
			"container", l.ContainerID)
	}
	return err
}
