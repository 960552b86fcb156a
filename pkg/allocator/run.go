package allocator

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// changed handles a change of the index.
func (a *Allocator) changed(old, l lease.Lease) {
	if old.State == lease.Active && old.KeptOnRelease() && l.State != lease.Active {
		a.waits.wake(old)
	}
	a.index.Settle(l.Addr, l.Version)
	for l := range l.Attachments() {
		a.attached(l)
	}
}

// attached handles an attachment of a lease that has changed.
func (a *Allocator) attached(l lease.Lease) {
	if a.isDuplicate(l) {
		a.duplicates.put(l.Holder)
	}
	if l.State != lease.Active {
		return
	}
	if pool, _ := a.index.Pools.Get(l.Pool); a.tombstones.overtook(l.Holder, pool.Network,
		moment{arrived: l.StartedAt}) {
		a.unconfirmed.put(l)
	}
}

// leftoverPeriod bounds for how long leases that are left over wait for Run.
const leftoverPeriod = 2 * time.Second

// Run releases addresses whose DEL came before their ADD was seen and second addresses of one holder, and settles
// writes whose outcome nobody asked for again. It returns when the context ends.
func (a *Allocator) Run(ctx context.Context) error {
	tick := time.NewTicker(leftoverPeriod)
	defer tick.Stop()
	failed := map[unconfirmedKey]lease.Lease{} // tried again at the next tick
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.unconfirmed.some:
			all := a.unconfirmed.drain()
			if a.releases.Load() == 0 { // else a DEL may be about to release them, and to say so in its answer
				all = a.releaseAllUnconfirmed(ctx, all)
			}
			maps.Copy(failed, all)
		case <-tick.C:
			a.forgetUnknown(ctx)
			a.releaseDuplicates(ctx)
			failed = a.releaseAllUnconfirmed(ctx, failed)
		}
	}
}

// inOrder returns the addresses that a map has, in an order that comes again where a run of the simulator is repeated.
func inOrder[V any](by map[netip.Addr]V) []netip.Addr {
	return slices.SortedFunc(maps.Keys(by), netip.Addr.Compare)
}
