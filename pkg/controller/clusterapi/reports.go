package clusterapi

import (
	"errors"
	"iter"
	"time"

	"github.com/bcsnet/bcsnet/pkg/recovery"
)

// unseenTime bounds the wait for the list of IPAddresses, as that of pools that lost leases: pods need addresses also
// while the list fails, for example because of the kind's conversion webhook.
const unseenTime = 5 * time.Minute

// Unseen returns an error while it is not known which IPAddresses there are. Without their kind, or a role for it,
// there are none.
func (r *Reconciler) Unseen() error {
	if r == nil || r.addresses.Seen() || r.addresses.Denied() {
		return nil
	}
	now := time.Now()
	if r.unseen.CompareAndSwap(0, now.UnixNano()); now.Sub(time.Unix(0, r.unseen.Load())) > unseenTime {
		return nil
	}
	return errors.New("the list of IPAddresses has not come yet")
}

// Objects yields the addresses that IPAddresses of our pools say they have.
func (r *Reconciler) Objects() iter.Seq[recovery.Object] {
	return func(yield func(recovery.Object) bool) {
		if r == nil {
			return
		}
		for _, u := range r.addresses.All() {
			if o, ok := recovery.ObjectOf(u); ok && !yield(o) {
				return
			}
		}
	}
}
