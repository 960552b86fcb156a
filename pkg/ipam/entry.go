package ipam

import (
	"cmp"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// change is an entry before and after, nil where there is none. What a record says of its lease never
// changes, so that it can be read outside the lock.
type change struct {
	addr     netip.Addr
	old, new *record
}

// leaseOf returns the lease of an entry, or of an address that has none.
func leaseOf(a netip.Addr, r *record) lease.Lease {
	if r == nil {
		return lease.Lease{Addr: a}
	}
	return r.lease()
}

// rewritten reports whether a list that is not older than an entry shows that the store was put back: a list is never
// behind its own version, and a version is written once. The entry of a later holder has the version of another's
// object.
func (x *state) rewritten(r *record, l lease.Lease) bool {
	_, behind := x.missing.behind[l.Addr]
	return l.Version < r.version || l.Version == r.version && !behind && nanos(l.Updated) != r.updated
}

// Rewritten reports whether an object that was read has the version of the index's entry, and is another: the store was
// put back to an older state. An entry of a later version says nothing, as it may have come since.
func (x *Feed) Rewritten(l lease.Lease) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	r := x.core.state.leases.record(l.Addr)
	return r != nil && r.version == l.Version && x.core.state.rewritten(r, l)
}

// apply enters a lease unless something newer is known.
func (x *state) apply(changes []change, l lease.Lease) []change {
	if v, ok := x.progress.deleted[l.Addr]; ok {
		if l.Version <= v {
			return changes
		}
		delete(x.progress.deleted, l.Addr)
	}
	old := x.leases.record(l.Addr)
	if old != nil && old.version >= l.Version && !failpoint.Broken("version") {
		return changes
	}
	r := pack(l)
	if old != nil && old.epoch == x.progress.epoch && r.continues(old) {
		r.bound = cmp.Or(old.bound, old.version)
	}
	return append(changes, x.put(old, r, false))
}

// continues reports whether somebody else wrote the object of a holding, as kubectl label and kubectl delete do. They
// do not write down with which version its holder got the address. An entry remembers it: it decides which is the first
// of two leases of a container.
func (r *record) continues(old *record) bool {
	return r.state == lease.Active && r.bound == 0 && r.updated == old.updated && r.started == old.started &&
		r.ifName() == old.ifName() && sameHolder(r, old)
}

// put makes r the entry of its address in place of old, if there was one. restored says that r is of a store that was
// put back to an older state, in which old was not yet. Who had the address later than r says has it still: an entry
// that is free is missing, and one of an earlier holder is his, with the version of the object that must be written
// again.
func (x *state) put(old, r *record, restored bool) change {
	known := x.missing.gone[r.addr]
	if old != nil {
		if _, behind := x.missing.behind[r.addr]; (behind || restored) && old.state != lease.Available {
			known = old
		}
		x.unlink(old)
	}
	delete(x.missing.behind, r.addr)
	later := known != nil && precedes(r, known) && !failpoint.Broken("earlier")
	if later && r.state != lease.Available && !sameHolder(known, r) {
		r = pack(lease.Restore(known.lease(), r.lease()))
		if !failpoint.Broken("behind") {
			x.missing.behind[r.addr] = struct{}{}
		}
	}
	r.epoch = x.progress.epoch
	x.link(r)
	if old != nil && r.state == lease.Available && (later && known == old || emptied(old, r)) {
		x.markMissing(old)
	}
	x.resolveMissing(r)
	x.refreshDerived(r.addr)
	return change{r.addr, old, r}
}

// drop forgets an entry whose object has gone.
func (x *state) drop(changes []change, r *record) []change {
	delete(x.missing.behind, r.addr)
	x.unlink(r)
	if !failpoint.Broken("lost") {
		x.markMissing(r)
	}
	x.refreshDerived(r.addr)
	return append(changes, change{r.addr, r, nil})
}
