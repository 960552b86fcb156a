package ipam

import (
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// progress is how far the watch has come. Within an epoch seen never goes back, and nobody waits for a version that was
// seen.
type progress struct {
	// seen is the version that the watch has reached, in this epoch.
	seen    uint64
	epoch   uint32
	waiters []*waiter
	// deleted holds the versions of objects that this process deleted until the watch delivers the deletion.
	deleted map[netip.Addr]uint64
	// returning counts the restores of the store for which nothing new is given at present.
	returning int
	// comparing: nothing new is given, because it is not known yet whether other replicas have seen more of the store.
	comparing bool
}

// waiter waits for a version.
type waiter struct {
	version uint64
	done    func(error) // called once, with the lock held
}

// reached moves seen forward and ends the waits for it. There are at most as many waiters as
// requests and writes under way.
func (x *progress) reached(version uint64) {
	if version <= x.seen {
		return
	}
	x.seen = version
	x.waiters = slices.DeleteFunc(x.waiters, func(w *waiter) bool {
		if w.version > version {
			return false
		}
		w.done(nil)
		return true
	})
}

// present reports whether versions of an epoch can be compared with those of the index.
func (x *progress) present(epoch uint32) bool { return epoch == x.epoch || failpoint.Broken("epoch") }
