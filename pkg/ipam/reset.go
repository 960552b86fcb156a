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
func (x *feed) ResetTo(all []lease.Lease, version uint64) {
	x.update(func() []change { return x.reset(all, version) })
}

func (x *feed) reset(all []lease.Lease, version uint64) (changes []change) {
	for _, w := range x.waiters {
		w.done(ErrReset)
	}
	x.waiters, x.seen = nil, version
	x.returning++
	x.epoch++
	clear(x.deleted)
	listed := make(map[*record]struct{}, len(all))
	for _, l := range all {
		old, r := x.record(l.Addr), pack(l)
		c := x.put(old, r, true)
		changes = append(changes, c)
		listed[c.new] = struct{}{}
	}
	for r := range x.byAddr.all() {
		if _, ok := listed[r]; !ok {
			changes = x.drop(changes, r)
		}
	}
	for a, h := range x.assumed {
		if h.Unknown {
			x.removeAssumed(a)
			x.unknown--
			x.refresh(a)
		}
	}
	return changes
}

// Epoch counts the restores that were noticed.
func (x *feed) Epoch() uint32 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.epoch
}

// Returned ends the time without new addresses that a restore began: whoever feeds the index calls it once for each,
// after ReturnTime.
func (x *feed) Returned() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.returning--
}

// Returning reports whether nothing new is given because the store was put back to an older state.
func (x *feed) Returning() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.returning > 0
}

// SetComparing begins or ends the time in which nothing new is given because it is not known whether other replicas have
// seen more of the store than there is.
func (x *feed) SetComparing(on bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.comparing = on
}
