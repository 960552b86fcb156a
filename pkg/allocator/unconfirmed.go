package allocator

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// unconfirmed holds leases that the watch delivered after their DEL had come. There are no more than tombstones.
type unconfirmed struct {
	mu   sync.Mutex
	by   map[unconfirmedKey]lease.Lease
	some chan struct{} // holds one element when there may be some
}

// unconfirmedKey is an attachment of an address; it may have two.
type unconfirmedKey struct {
	addr      netip.Addr
	container string
}

func (k unconfirmedKey) compare(o unconfirmedKey) int {
	return cmp.Or(k.addr.Compare(o.addr), cmp.Compare(k.container, o.container))
}

func newUnconfirmed() *unconfirmed {
	return &unconfirmed{by: map[unconfirmedKey]lease.Lease{}, some: make(chan struct{}, 1)}
}

func (u *unconfirmed) put(l lease.Lease) {
	u.mu.Lock()
	u.by[unconfirmedKey{l.Addr, l.ContainerID}] = l
	u.mu.Unlock()
	select {
	case u.some <- struct{}{}:
	default:
	}
}

// drain empties the set and returns what was in it.
func (u *unconfirmed) drain() map[unconfirmedKey]lease.Lease {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.by
	u.by = map[unconfirmedKey]lease.Lease{}
	return all
}

// releaseAllUnconfirmed releases several at once, and returns those that it could not release.
func (m *Repairer) releaseAllUnconfirmed(
	ctx context.Context, all map[unconfirmedKey]lease.Lease,
) map[unconfirmedKey]lease.Lease {
	var mu sync.Mutex
	failed := map[unconfirmedKey]lease.Lease{}
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for _, key := range slices.SortedFunc(maps.Keys(all), unconfirmedKey.compare) {
		l := all[key]
		group.Go(func() error {
			if m.engine.releaseOvertaken(ctx, l) != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[key] = l
			}
			return nil
		})
	}
	_ = group.Wait() // what failed is in the map
	return failed
}
