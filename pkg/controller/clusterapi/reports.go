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
			a := read[address](u)
			if a == nil || !a.Spec.PoolRef.isOurs() || a.Spec.ClaimRef.Name != a.Name || !a.addr().IsValid() {
				continue
			}
			o := recovery.Object{Owner: r.holders.Owner(nameOf(u)), Namespace: a.Namespace, Addr: a.addr()}
			if !yield(o) {
				return
			}
		}
	}
}
