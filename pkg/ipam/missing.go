package ipam

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// An address is missing when its object goes, or is emptied by hand, while somebody has it, or when the object names
// an earlier holder after the store was put back. Nobody else is given it until the lease is written again from what
// is remembered here. Where the object is of an earlier holder, the entry of the index is that of the later one:
// neither a release nor a request of the earlier one finds the address.

// markMissing remembers an entry that goes although it is held. A release is an update and never comes here.
func (x *state) markMissing(r *record) {
	if r.state != lease.Available {
		x.removeMissing(r.addr)
		now := x.leases.record(r.addr)
		x.adjustCharges(r.addr, now, -1)
		x.missing.gone[r.addr] = r
		x.adjustCharges(r.addr, now, +1)
		x.adjustUsage(r, +1)
	}
}

// emptied reports whether an entry was made free by somebody who does not go through the transitions of a lease, as
// with kubectl edit: these take the finalizer off, unless the object is being deleted, and write when that was, which
// is never when the holder got the address.
func emptied(old, r *record) bool {
	if old.state == lease.Available || r.state != lease.Available || failpoint.Broken("emptied") {
		return false
	}
	return r.has(flagFinalizer) && !r.has(flagDeleting) || old.updated != 0 && (r.updated == 0 ||
		r.updated == old.updated)
}

// sameHolder reports whether two entries of an address are of the same holder.
func sameHolder(a, b *record) bool {
	return a.state == b.state && a.container() == b.container() && a.uid() == b.uid() &&
		a.owner() == b.owner() && a.claim() == b.claim() && sameOther(a.other(), b.other())
}

// sameOther reports whether the second attachments of two entries are the same, or there is none.
func sameOther(a, b *lease.Holder) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ContainerID == b.ContainerID && a.PodUID == b.PodUID
}

// precedes reports whether an entry says nothing of a holding that is known: it was written before, or only a holding
// of before was given up in it. After the store was put back to a time of that one, whoever knows no later frees the
// address.
func precedes(r, known *record) bool {
	if r.updated <= known.updated {
		return r.updated < known.updated
	}
	if r.state != lease.Available || failpoint.Broken("freed") {
		return false
	}
	held := false
	for p := range r.history().All() {
		if p.Since.Unix() >= fromNanos(known.updated).Unix() { // to the second
			return false
		}
		held = held || !p.Since.IsZero()
	}
	return held
}

// resolveMissing forgets that an address is missing which somebody has again, or which was released before its object
// went. One whose object was merely made anew is still missing: whoever made it knew nothing of its holder.
func (x *state) resolveMissing(r *record) {
	if l, ok := x.missing.gone[r.addr]; ok && (r.state != lease.Available || r.updated > l.updated && !precedes(r, l)) {
		x.removeMissing(r.addr)
	}
}

// removeMissing forgets that an address is missing, if it is.
func (x *state) removeMissing(a netip.Addr) {
	if r, ok := x.missing.gone[a]; ok {
		now := x.leases.record(a)
		x.adjustCharges(a, now, -1)
		delete(x.missing.gone, a)
		x.adjustCharges(a, now, +1)
		x.adjustUsage(r, -1)
	}
}
