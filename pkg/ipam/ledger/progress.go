package ledger

import (
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// Progress is how far the watch has come. Within an epoch Seen never goes back, and no waiter waits for a version up to
// it.
type Progress struct {
	// Seen is the version that the watch has reached, in this epoch.
	Seen    uint64
	Epoch   uint32
	Waiters []*Waiter
	// Deleted holds the versions of objects that this process deleted until the watch delivers the deletion.
	Deleted map[netip.Addr]uint64
	// Returning counts the restores of the store because of which no new address is given at present.
	Returning int
	// Comparing: no new address is given, because other replicas may have seen later versions of the store.
	Comparing bool
}

// Waiter waits for a version.
type Waiter struct {
	Version uint64
	Done    func(error) // called once, with the lock held
}

// Reached moves Seen forward and ends the waits for it. There are at most as many waiters as requests and writes in
// progress.
func (x *Progress) Reached(version uint64) {
	if version <= x.Seen {
		return
	}
	x.Seen = version
	x.Waiters = slices.DeleteFunc(x.Waiters, func(w *Waiter) bool {
		if w.Version > version {
			return false
		}
		w.Done(nil)
		return true
	})
}

// Present reports whether versions of an epoch can be compared with those of the index.
func (x *Progress) Present(epoch uint32) bool { return epoch == x.Epoch || failpoint.Broken("epoch") }
