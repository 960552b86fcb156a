package allocator

import (
	"context"
	"net/netip"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// unconfirmed holds leases that the watch delivered after their DEL had come. There are no more than tombstones.
type unconfirmed struct {
	mu   sync.Mutex
	by   map[netip.Addr]lease.Lease
	some chan struct{} // holds one element when there may be some
}

func newUnconfirmed() *unconfirmed {
	return &unconfirmed{by: map[netip.Addr]lease.Lease{}, some: make(chan struct{}, 1)}
}

func (u *unconfirmed) put(l lease.Lease) {
	u.mu.Lock()
	u.by[l.Addr] = l
	u.mu.Unlock()
	select {
	case u.some <- struct{}{}:
	default:
	}
}

// drain empties the set and returns what was in it.
func (u *unconfirmed) drain() map[netip.Addr]lease.Lease {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.by
	u.by = map[netip.Addr]lease.Lease{}
	return all
}

// releaseAllUnconfirmed releases several at once, and returns those that it could not release.
func (a *Allocator) releaseAllUnconfirmed(
	ctx context.Context, all map[netip.Addr]lease.Lease,
) map[netip.Addr]lease.Lease {
	var mu sync.Mutex
	failed := map[netip.Addr]lease.Lease{}
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for _, addr := range inOrder(all) {
		l := all[addr]
		group.Go(func() error {
			if a.releaseUnconfirmed(ctx, l) != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[l.Addr] = l
			}
			return nil
		})
	}
	_ = group.Wait() // what failed is in the map
	return failed
}

// releaseUnconfirmed releases a lease, unless a later ADD has it.
func (a *Allocator) releaseUnconfirmed(ctx context.Context, l lease.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, MaxRequestTime)
	defer cancel()
	released, err := a.releaseOne(ctx, l, func(now lease.Lease) bool {
		return now.State == lease.Active && now.ContainerID == l.ContainerID && now.Owner == l.Owner &&
			now.IfName == l.IfName && now.StartedAt.Equal(l.StartedAt)
	})
	switch {
	case err != nil:
		a.log.Warn("could not release an address whose DEL had overtaken its ADD", "address", l.Addr.String(), "holder",
			l.Who(), "container", l.ContainerID, "error", err)
	case released:
		a.log.Info("released an address whose DEL had overtaken its ADD", "address", l.Addr.String(), "holder", l.Who(),
			"container", l.ContainerID)
	}
	return err
}
