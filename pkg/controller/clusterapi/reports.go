package clusterapi

import (
	"errors"
	"iter"

	"github.com/bcsnet/bcsnet/pkg/recovery"
)

// Unseen returns an error while it is not known which IPAddresses there are. Without their kind, or a role for it,
// there are none.
func (r *Reconciler) Unseen() error {
	if r == nil || r.addresses.Seen() || r.addresses.Denied() {
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
