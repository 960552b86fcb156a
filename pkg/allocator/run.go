package allocator

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// changed is told of every change of the index.
func (a *Allocator) changed(old, l ipam.Lease) {
	if old.State == ipam.Active && old.Retained() && l.State != ipam.Active {
		a.turns.wake(old)
	}
	a.index.Settle(l.Addr, l.Version)
	if a.isDuplicate(l) {
		a.duplicates.put(l.Holder)
	}
	if l.State != ipam.Active {
		return
	}
	if pool, _ := a.index.Pool(l.Pool); a.tombstones.overtook(l.Holder, pool.Network, moment{arrived: l.StartedAt}) {
		a.orphans.put(l)
	}
}

// orphans are leases whose DEL came before their ADD was seen. There are no more than tombstones.
type orphans struct {
	mu   sync.Mutex
	by   map[netip.Addr]ipam.Lease
	some chan struct{} // holds one element when there may be some
}

func newOrphans() *orphans {
	return &orphans{by: map[netip.Addr]ipam.Lease{}, some: make(chan struct{}, 1)}
}

func (o *orphans) put(l ipam.Lease) {
	o.mu.Lock()
	o.by[l.Addr] = l
	o.mu.Unlock()
	select {
	case o.some <- struct{}{}:
	default:
	}
}

// take empties the set.
func (o *orphans) take() map[netip.Addr]ipam.Lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.by
	o.by = map[netip.Addr]ipam.Lease{}
	return all
}

// settleEvery bounds how long what is left over waits for Run.
const settleEvery = 2 * time.Second

// Run releases addresses whose DEL came before their ADD was seen and second addresses of one holder, and settles
// writes whose outcome nobody asked for again. It returns when the context ends.
func (a *Allocator) Run(ctx context.Context) error {
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	failed := map[netip.Addr]ipam.Lease{} // tried again at the next tick
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.orphans.some:
			all := a.orphans.take()
			if a.releases.Load() == 0 { // else a DEL may be about to release them, and to say so in its answer
				all = a.releaseOrphans(ctx, all)
			}
			maps.Copy(failed, all)
		case <-tick.C:
			a.forgetDoubts(ctx)
			a.settleDuplicates(ctx)
			failed = a.releaseOrphans(ctx, failed)
		}
	}
}

// releaseOrphans returns those that it could not release.
func (a *Allocator) releaseOrphans(ctx context.Context, all map[netip.Addr]ipam.Lease) map[netip.Addr]ipam.Lease {
	var mu sync.Mutex
	failed := map[netip.Addr]ipam.Lease{}
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for _, addr := range inOrder(all) {
		l := all[addr]
		group.Go(func() error {
			if a.releaseOrphan(ctx, l) != nil {
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

// inOrder are the addresses that a map has, in an order that comes again where a run of the simulator is repeated.
func inOrder[V any](by map[netip.Addr]V) []netip.Addr {
	return slices.SortedFunc(maps.Keys(by), netip.Addr.Compare)
}

func (a *Allocator) releaseOrphan(ctx context.Context, l ipam.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, MaxRequestTime)
	defer cancel()
	released, err := a.releaseOne(ctx, l, func(now ipam.Lease) bool {
		return now.State == ipam.Active && now.ContainerID == l.ContainerID && now.Owner == l.Owner && now.IfName == l.IfName &&
			now.StartedAt.Equal(l.StartedAt)
	})
	switch {
	case err != nil:
		a.log.Warn("could not release an address whose DEL had overtaken its ADD", "address", l.Addr.String(), "holder", l.Who(), "container", l.ContainerID, "error", err)
	case released:
		a.log.Info("released an address whose DEL had overtaken its ADD", "address", l.Addr.String(), "holder", l.Who(), "container", l.ContainerID)
	}
	return err
}

// forgetDoubts ends doubts that are so old that the write cannot arrive any more.
func (a *Allocator) forgetDoubts(ctx context.Context) {
	doubts := a.index.Unknown("")
	for _, addr := range inOrder(doubts) {
		if a.leases.Now().Sub(doubts[addr].Since) < doubtLife {
			continue
		}
		live, err := a.leases.Get(ctx, addr)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			continue
		default:
			a.index.Wrote(live)
		}
		a.index.Forget(addr)
	}
}
