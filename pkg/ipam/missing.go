package ipam

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// An address is missing when its object goes, or is emptied by hand, while somebody has it, or when the object names an earlier
// holder after the store was put back. Nobody else is given it until the lease is written again from what is remembered
// here. Where the object is of an earlier holder, the entry of the index is that of the later one: neither a release nor a
// request of the earlier one finds the address.

// missingLeases has the addresses that are missing. None is in both of its maps.
type missingLeases struct {
	// missing are the addresses whose object went while they were held.
	missing map[netip.Addr]*record
	// behind are the addresses whose object names an earlier holder than the entry does.
	behind map[netip.Addr]struct{}
}

func newMissingLeases() missingLeases {
	return missingLeases{missing: map[netip.Addr]*record{}, behind: map[netip.Addr]struct{}{}}
}

// markMissing remembers an entry that goes although it is held. A release is an update and never comes here.
func (x *state) markMissing(r *record) {
	if r.state != Available {
		x.removeMissing(r.addr)
		now := x.record(r.addr)
		x.adjustCharges(r.addr, now, -1)
		x.missing[r.addr] = r
		x.adjustCharges(r.addr, now, +1)
		x.adjustUsage(r, +1)
	}
}

// emptied reports whether an entry was made free by somebody who does not go through the transitions of a lease, as with
// kubectl edit: these take the finalizer off, unless the object is being deleted, and write when that was, which is never
// when the holder got the address.
func emptied(old, r *record) bool {
	if old.state == Available || r.state != Available || failpoint.Broken("emptied") {
		return false
	}
	return r.has(flagFinalizer) && !r.has(flagDeleting) || old.updated != 0 && (r.updated == 0 || r.updated == old.updated)
}

// sameHolder reports whether two entries of an address are of the same holder.
func sameHolder(a, b *record) bool {
	return a.state == b.state && a.container() == b.container() && a.uid() == b.uid() && a.owner() == b.owner() && a.claim() == b.claim()
}

// precedes reports whether an entry says nothing of a holding that is known: it was written before, or only a holding of before
// was given up in it. After the store was put back to a time of that one, whoever knows no later frees the address.
func precedes(r, known *record) bool {
	if r.updated <= known.updated {
		return r.updated < known.updated
	}
	if r.state != Available || failpoint.Broken("freed") {
		return false
	}
	held := false
	for p := range r.history().each() {
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
	if l, ok := x.missing[r.addr]; ok && (r.state != Available || r.updated > l.updated && !precedes(r, l)) {
		x.removeMissing(r.addr)
	}
}

// removeMissing forgets that an address is missing, if it is.
func (x *state) removeMissing(a netip.Addr) {
	if r, ok := x.missing[a]; ok {
		now := x.record(a)
		x.adjustCharges(a, now, -1)
		delete(x.missing, a)
		x.adjustCharges(a, now, +1)
		x.adjustUsage(r, -1)
	}
}

// Missing is the lease of an address as it was when its object went, or went back; ok is false when it is not missing.
func (x *leaseView) Missing(a netip.Addr) (l Lease, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if _, behind := x.behind[a]; behind {
		return x.record(a).lease(), true
	}
	r, ok := x.missing[a]
	if !ok {
		return Lease{Addr: a}, false
	}
	return r.lease(), true
}

// MissingOf is an address that an attachment had when its object went; ok is false when there is none.
func (x *leaseView) MissingOf(h Holder) (l Lease, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, r := range x.missing {
		if l := r.lease(); l.isHeldBy(h) {
			return l, true
		}
	}
	for a := range x.behind {
		if l := x.record(a).lease(); l.isHeldBy(h) {
			return l, true
		}
	}
	return Lease{}, false
}

func (l Lease) isHeldBy(h Holder) bool {
	return l.State == Active && l.Owner == h.Owner && l.SameAttachment(h)
}

// Restore is a missing lease as it is written in place of what is there now, if anything is. An object that is being deleted has
// it until its holder gives the address up, as it would have had.
func Restore(l, now Lease) Lease {
	l.stay()
	l.Version, l.Epoch, l.Deleting, l.Foreign = now.Version, now.Epoch, now.Deleting, now.Foreign
	l.HeldFinalizer = !now.Deleting || now.HeldFinalizer // the API server adds none to an object that is being deleted
	return l
}

// use says by whom an address that is not free is used.
func (l Lease) use() string {
	if l.State == Reserved {
		return "reserved"
	}
	return l.Where()
}

// CountMissing is how many addresses are missing.
func (x *leaseView) CountMissing() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.missing) + len(x.behind)
}
