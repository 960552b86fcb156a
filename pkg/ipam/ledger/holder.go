package ledger

import (
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Continues reports whether somebody else wrote the object of a holding, as kubectl label and kubectl delete do. They
// do not write down with which version its holder got the address. An entry remembers it: it decides which is the first
// of two leases of a container.
func (r *Record) Continues(old *Record) bool {
	return r.State == lease.Active && r.Bound == 0 && r.Updated == old.Updated && r.started == old.started &&
		r.IfName() == old.IfName() && SameHolder(r, old)
}

// Emptied reports whether an entry was made free by somebody who does not go through the transitions of a lease, as
// with kubectl edit: these take the finalizer off, unless the object is being deleted, and write when that was, which
// is never when the holder got the address.
func Emptied(old, r *Record) bool {
	if old.State == lease.Available || r.State != lease.Available || failpoint.Broken("emptied") {
		return false
	}
	return r.Has(FlagFinalizer) && !r.Has(FlagDeleting) || old.Updated != 0 && (r.Updated == 0 ||
		r.Updated == old.Updated)
}

// SameHolder reports whether two entries of an address are of the same holder.
func SameHolder(a, b *Record) bool {
	return a.State == b.State && a.Container() == b.Container() && a.UID() == b.UID() &&
		a.Owner() == b.Owner() && a.Claim() == b.Claim() && sameOther(a.Other(), b.Other())
}

// sameOther reports whether the second attachments of two entries are the same, or there is none.
func sameOther(a, b *lease.Holder) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ContainerID == b.ContainerID && a.PodUID == b.PodUID
}

// Precedes reports whether an entry says nothing of a holding that is known: it was written before, or only a holding
// of before was given up in it. After the store was put back to a time of that one, whoever knows no later frees the
// address.
func Precedes(r, known *Record) bool {
	if r.Updated <= known.Updated {
		return r.Updated < known.Updated
	}
	if r.State != lease.Available || failpoint.Broken("freed") {
		return false
	}
	held := false
	for p := range r.History().All() {
		if p.Since.Unix() >= FromNanos(known.Updated).Unix() { // to the second
			return false
		}
		held = held || !p.Since.IsZero()
	}
	return held
}
