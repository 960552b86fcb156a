package ipam

import (
	"errors"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// ReturnTime bounds the time without new addresses after the store was put back to an older state. No replica is sure
// to know every holder. One whose watch had not delivered the last write would give a container that asks again a
// second address, and the first one to somebody else. Meanwhile the other replicas notice, too, and write what they
// know.
const ReturnTime = 15 * time.Second

// OrphanTime bounds that time if no replica knew the store as it was. The containers of pods that the API server knows
// nothing of have addresses that nobody can tell; their kubelets end them in that time. It is what package gone grants
// the containers of a pod that is gone.
const OrphanTime = 45 * time.Second

// ErrReset says that the index was made anew while somebody waited for it to reach a version.
var ErrReset = errors.New("the store was put back to an older state")

// ResetTo takes a full list of a store that was put back to an older state, whatever the versions. What was held by
// what was known before, and is not in the list, or free in it, or of an earlier holder, counts as missing. Waits
// for a version end with ErrReset, and no outcome is unknown any more: the write was for a store that is no more. From
// then on nothing new is given, until Returned is called.
func (x *Feed) ResetTo(all []lease.Lease, version uint64) {
	x.update(func() []ledger.Change { return x.reset(all, version) })
}

func (x *Feed) reset(all []lease.Lease, version uint64) (changes []ledger.Change) {
	for _, w := range x.core.state.progress.Waiters {
		w.Done(ErrReset)
	}
	x.core.state.progress.Waiters, x.core.state.progress.Seen = nil, version
	x.core.state.progress.Returning++
	x.core.state.progress.Epoch++
	clear(x.core.state.progress.Deleted)
	listed := make(map[*ledger.Record]struct{}, len(all))
	for _, l := range all {
		old, r := x.core.state.leases.Record(l.Addr), ledger.Pack(l)
		c := x.core.state.put(old, r, true)
		changes = append(changes, c)
		listed[c.New] = struct{}{}
	}
	for r := range x.core.state.leases.ByAddr.All() {
		if _, ok := listed[r]; !ok {
			changes = x.core.state.drop(changes, r)
		}
	}
	for a, h := range x.core.state.assumed.ByAddr {
		if h.Unknown {
			x.core.state.removeAssumed(a)
			x.core.state.assumed.Unknown--
			x.core.state.refresh(a)
		}
	}
	return changes
}

// Epoch counts the restores that were noticed.
func (x *Feed) Epoch() uint32 {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.progress.Epoch
}

// Returned ends the time without new addresses that a restore began: whoever feeds the index calls it once for each,
// after ReturnTime.
func (x *Feed) Returned() {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.progress.Returning--
}

// Returning reports whether nothing new is given because the store was put back to an older state.
func (x *Feed) Returning() bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.progress.Returning > 0
}

// SetComparing begins or ends the time in which nothing new is given because it is not known whether other replicas
// have seen more of the store than there is.
func (x *Feed) SetComparing(on bool) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.progress.Comparing = on
}
