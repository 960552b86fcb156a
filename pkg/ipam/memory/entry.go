package memory

import (
	"cmp"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// Apply enters a lease unless something newer is known.
func (x *State) Apply(changes []ledger.Change, l lease.Lease) []ledger.Change {
	if v, ok := x.Progress.Deleted[l.Addr]; ok {
		if l.Version <= v {
			return changes
		}
		delete(x.Progress.Deleted, l.Addr)
	}
	old := x.Leases.Record(l.Addr)
	if old != nil && old.Version >= l.Version && !failpoint.Broken("version") {
		return changes
	}
	r := ledger.Pack(l)
	if old != nil && old.Epoch == x.Progress.Epoch && r.Continues(old) {
		r.Bound = cmp.Or(old.Bound, old.Version)
	}
	return append(changes, x.Put(old, r, false))
}

// Put makes r the entry of its address in place of old, if there was one. restored says that r is of a store that was
// put back to an older state, in which old was not yet. Who had the address later than r says has it still: an entry
// that is free is missing, and one of an earlier holder is his, with the version of the object that must be written
// again.
func (x *State) Put(old, r *ledger.Record, restored bool) ledger.Change {
	known := x.Missing.Gone[r.Addr]
	if old != nil {
		if _, behind := x.Missing.Behind[r.Addr]; (behind || restored) && old.State != lease.Available {
			known = old
		}
		x.unlink(old)
	}
	delete(x.Missing.Behind, r.Addr)
	later := known != nil && ledger.Precedes(r, known) && !failpoint.Broken("earlier")
	if later && r.State != lease.Available && !ledger.SameHolder(known, r) {
		r = ledger.Pack(lease.Restore(known.Lease(), r.Lease()))
		if !failpoint.Broken("behind") {
			x.Missing.Behind[r.Addr] = struct{}{}
		}
	}
	r.Epoch = x.Progress.Epoch
	x.link(r)
	if old != nil && r.State == lease.Available && (later && known == old || ledger.Emptied(old, r)) {
		x.markMissing(old)
	}
	x.resolveMissing(r)
	x.refreshDerived(r.Addr)
	return ledger.Change{Addr: r.Addr, Old: old, New: r}
}

// Drop forgets an entry whose object has gone.
func (x *State) Drop(changes []ledger.Change, r *ledger.Record) []ledger.Change {
	delete(x.Missing.Behind, r.Addr)
	x.unlink(r)
	if !failpoint.Broken("lost") {
		x.markMissing(r)
	}
	x.refreshDerived(r.Addr)
	return append(changes, ledger.Change{Addr: r.Addr, Old: r, New: nil})
}
