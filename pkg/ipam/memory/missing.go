package memory

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// An address is missing when its object goes, or is emptied by hand, while somebody has it, or when the object names
// an earlier holder after the store was put back. Nobody else is given it until the lease is written again from what
// is remembered here. Where the object is of an earlier holder, the entry of the index is that of the later one:
// neither a release nor a request of the earlier one finds the address.

// markMissing remembers an entry that goes although it is held. A release is an update and never comes here.
func (x *State) markMissing(r *ledger.Record) {
	if r.State != lease.Available {
		x.removeMissing(r.Addr)
		now := x.Leases.Record(r.Addr)
		x.adjustCharges(r.Addr, now, -1)
		x.Missing.Gone[r.Addr] = r
		x.adjustCharges(r.Addr, now, +1)
		x.adjustUsage(r, +1)
	}
}

// resolveMissing forgets that an address is missing which somebody has again, or which was released before its object
// went. One whose object was merely made anew is still missing: whoever made it knew nothing of its holder.
func (x *State) resolveMissing(r *ledger.Record) {
	l, missing := x.Missing.Gone[r.Addr]
	if missing && (r.State != lease.Available || r.Updated > l.Updated && !ledger.Precedes(r, l)) {
		x.removeMissing(r.Addr)
	}
}

// removeMissing forgets that an address is missing, if it is.
func (x *State) removeMissing(a netip.Addr) {
	if r, ok := x.Missing.Gone[a]; ok {
		now := x.Leases.Record(a)
		x.adjustCharges(a, now, -1)
		delete(x.Missing.Gone, a)
		x.adjustCharges(a, now, +1)
		x.adjustUsage(r, -1)
	}
}
