package ledger

import (
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// Progress is how far the watch has come. Within an epoch seen never goes back, and nobody waits for a version that was
// seen.
type Progress struct {
	// Seen is the version that the watch has reached, in this epoch.
	Seen    uint64
	Epoch   uint32
	Waiters []*Waiter
	// Deleted holds the versions of objects that this process deleted until the watch delivers the deletion.
	Deleted map[netip.Addr]uint64
	// Returning counts the restores of the store for which nothing new is given at present.
	Returning int
	// Comparing: nothing new is given, because it is not known yet whether other replicas have seen more of the store.
	Comparing bool
}

// Waiter waits for a version.
type Waiter struct {
	Version uint64
	Done    func(error) // called once, with the lock held
}

// Reached moves seen forward and ends the waits for it. There are at most as many waiters as
// requests and writes under way.
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
