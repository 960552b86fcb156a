package allocator

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Repairer releases what is left over: leases whose DEL came before their ADD was seen, second leases of one
// attachment, and what the containers held that a runtime has no more. It settles writes of unknown outcome, too.
type Repairer struct {
	engine      *engine
	writer      *writer
	holdings    *holdings
	unconfirmed *unconfirmed
	duplicates  *duplicates
}

// changed handles a change of the index.
func (m *Repairer) changed(_, l lease.Lease) {
	m.engine.index.Settle(l.Addr, l.Version)
	for l := range l.Attachments() {
		m.attached(l)
	}
}

// attached handles an attachment of a lease that has changed.
func (m *Repairer) attached(l lease.Lease) {
	if m.isDuplicate(l) {
		m.duplicates.put(l.Holder)
	}
	if l.State != lease.Active {
		return
	}
	if pool, _ := m.engine.index.Pools.Get(l.Pool); m.engine.tombstones.overtook(l.Holder, pool.Network,
		moment{arrived: l.StartedAt}) {
		m.unconfirmed.put(l)
	}
}

// leftoverPeriod bounds for how long leases that are left over wait for Run.
const leftoverPeriod = 2 * time.Second

// Run releases addresses whose DEL came before their ADD was seen and second addresses of one holder, and settles
// writes whose outcome nobody asked for again. It returns when the context ends.
func (m *Repairer) Run(ctx context.Context) error {
	tick := time.NewTicker(leftoverPeriod)
	defer tick.Stop()
	failed := map[unconfirmedKey]lease.Lease{} // tried again at the next tick
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.unconfirmed.some:
			all := m.unconfirmed.drain()
			if m.engine.releasing.Load() == 0 { // else a DEL may be about to release them, and to say so in its answer
				all = m.releaseAllUnconfirmed(ctx, all)
			}
			maps.Copy(failed, all)
		case <-tick.C:
			m.writer.forgetUnknown(ctx)
			m.releaseDuplicates(ctx)
			failed = m.releaseAllUnconfirmed(ctx, failed)
		}
	}
}

// inOrder returns the addresses that a map has, in an order that comes again where a run of the simulator is repeated.
func inOrder[V any](by map[netip.Addr]V) []netip.Addr {
	return slices.SortedFunc(maps.Keys(by), netip.Addr.Compare)
}
