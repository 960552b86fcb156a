package ipam

import (
	"errors"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
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
	x.update(func() []change { return x.reset(all, version) })
}

func (x *Feed) reset(all []lease.Lease, version uint64) (changes []change) {
	for _, w := range x.core.state.progress.waiters {
		w.done(ErrReset)
	}
	x.core.state.progress.waiters, x.core.state.progress.seen = nil, version
	x.core.state.progress.returning++
	x.core.state.progress.epoch++
	clear(x.core.state.progress.deleted)
	listed := make(map[*record]struct{}, len(all))
	for _, l := range all {
		old, r := x.core.state.leases.record(l.Addr), pack(l)
		c := x.core.state.put(old, r, true)
		changes = append(changes, c)
		listed[c.new] = struct{}{}
	}
	for r := range x.core.state.leases.byAddr.all() {
		if _, ok := listed[r]; !ok {
			changes = x.core.state.drop(changes, r)
		}
	}
	for a, h := range x.core.state.assumed.byAddr {
		if h.Unknown {
			x.core.state.removeAssumed(a)
			x.core.state.assumed.unknown--
			x.core.state.refresh(a)
		}
	}
	return changes
}

// Epoch counts the restores that were noticed.
func (x *Feed) Epoch() uint32 {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.progress.epoch
}

// Returned ends the time without new addresses that a restore began: whoever feeds the index calls it once for each,
// after ReturnTime.
func (x *Feed) Returned() {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.progress.returning--
}

// Returning reports whether nothing new is given because the store was put back to an older state.
func (x *Feed) Returning() bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.progress.returning > 0
}

// SetComparing begins or ends the time in which nothing new is given because it is not known whether other replicas
// have seen more of the store than there is.
func (x *Feed) SetComparing(on bool) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.progress.comparing = on
}
