package index

import (
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// ResetTo takes a full list of a store that was put back to an older state, whatever the versions. What was held by
// what was known before, and is not in the list, or free in it, or of an earlier holder, counts as missing. Waits
// for a version end with ErrReset, and no outcome is unknown any more: the write was for a store that is no more. From
// then on nothing new is given, until Returned is called.
func (x *Feed) ResetTo(all []lease.Lease, version uint64) {
	x.update(func() []ledger.Change { return x.reset(all, version) })
}

func (x *Feed) reset(all []lease.Lease, version uint64) (changes []ledger.Change) {
	for _, w := range x.core.state.Progress.Waiters {
		w.Done(ipam.ErrReset)
	}
	x.core.state.Progress.Waiters, x.core.state.Progress.Seen = nil, version
	x.core.state.Progress.Returning++
	x.core.state.Progress.Epoch++
	clear(x.core.state.Progress.Deleted)
	listed := make(map[*ledger.Record]struct{}, len(all))
	for _, l := range all {
		old, r := x.core.state.Leases.Record(l.Addr), ledger.Pack(l)
		c := x.core.state.Put(old, r, true)
		changes = append(changes, c)
		listed[c.New] = struct{}{}
	}
	for r := range x.core.state.Leases.ByAddr.All() {
		if _, ok := listed[r]; !ok {
			changes = x.core.state.Drop(changes, r)
		}
	}
	for a, h := range x.core.state.Assumed.ByAddr {
		if h.Unknown {
			x.core.state.RemoveAssumed(a)
			x.core.state.Assumed.Unknown--
			x.core.state.Refresh(a)
		}
	}
	return changes
}

// Epoch counts the restores that were noticed.
func (x *Feed) Epoch() uint32 {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.Progress.Epoch
}

// Returned ends the time without new addresses that a restore began: whoever feeds the index calls it once for each,
// after ReturnTime.
func (x *Feed) Returned() {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.Progress.Returning--
}

// Returning reports whether nothing new is given because the store was put back to an older state.
func (x *Feed) Returning() bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.Progress.Returning > 0
}

// SetComparing begins or ends the time in which nothing new is given because it is not known whether other replicas
// have seen more of the store than there is.
func (x *Feed) SetComparing(on bool) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.Progress.Comparing = on
}
