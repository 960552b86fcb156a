package ipam

import (
	"cmp"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// change is an entry before and after, nil where there is none. What a record says of its lease never
// changes, so that it can be read outside the lock.
type change struct {
	addr     netip.Addr
	old, new *record
}

// update changes the index and tells the subscribers about it outside the lock.
func (x *Index) update(do func() []change) {
	x.mu.Lock()
	changes := do()
	x.mu.Unlock()
	if len(x.subscribers) == 0 {
		return
	}
	for _, c := range changes {
		old, new := leaseOf(c.addr, c.old), leaseOf(c.addr, c.new)
		for _, fn := range x.subscribers {
			fn(old, new)
		}
	}
}

// leaseOf is the lease of an entry, or of an address that has none.
func leaseOf(a netip.Addr, r *record) Lease {
	if r == nil {
		return Lease{Addr: a}
	}
	return r.lease()
}

// Watched takes an object that the watch delivered. The watch delivers in the order of versions: an
// event that it has passed already is old news.
func (x *Index) Watched(l Lease) {
	x.update(func() (changes []change) {
		if l.Version > x.seen {
			changes = x.apply(changes, l)
			x.reached(l.Version)
		}
		return changes
	})
}

// WatchedDelete takes the deletion of an object that the watch delivered; version is the deletion's.
func (x *Index) WatchedDelete(a netip.Addr, version uint64) {
	x.update(func() (changes []change) {
		if x.deleted[a] < version {
			delete(x.deleted, a)
		}
		if r := x.record(a); r != nil && r.version <= version {
			changes = x.drop(changes, r)
		}
		x.reached(version)
		return changes
	})
}

// Wrote takes the result of a write of this process. What the watch has passed already is old news:
// it was delivered, or replaced by something newer. So is an answer of an earlier epoch.
func (x *Index) Wrote(l Lease) {
	x.update(func() (changes []change) {
		if l.Version > x.seen && x.present(l.Epoch) {
			changes = x.apply(changes, l)
		}
		return changes
	})
}

// WroteDelete takes note that this process deleted the object of an address at the given version, or found that it is gone.
// The note stays until the watch delivers the deletion, so that neither a late event nor a late answer
// to an earlier write can bring it back. Where the watch has passed the version and the index shows
// something else, the deletion was delivered already. A version of an earlier epoch says nothing: noted, it would hide
// the object until the versions have come that far again.
func (x *Index) WroteDelete(a netip.Addr, version uint64, epoch uint32) {
	x.update(func() (changes []change) {
		r := x.record(a)
		switch {
		case !x.present(epoch):
			return nil
		case r != nil && r.version > version:
			return nil
		case (r == nil || r.version < version) && version <= x.seen:
			return nil
		}
		x.deleted[a] = max(x.deleted[a], version)
		if r != nil {
			changes = x.drop(changes, r)
		}
		return changes
	})
}

// Replace takes a full list as of version: entries that it does not hold go, unless they are newer
// than the list. A list older than what the watch delivered changes nothing. It says whether the list shows that
// the store was put back to an older state, and its versions were raised so that everybody lists: then, too, nothing new is
// given until Returned.
func (x *Index) Replace(all []Lease, version uint64) (restored bool) {
	x.update(func() (changes []change) {
		if version < x.seen {
			return nil
		}
		listed := make(map[netip.Addr]struct{}, len(all))
		for _, l := range all {
			listed[l.Addr] = struct{}{}
			if old := x.record(l.Addr); old != nil && old.version <= version && x.rewritten(old, l) {
				if !restored {
					x.returning++
				}
				restored = true
				changes = append(changes, x.put(old, pack(l), true))
				continue
			}
			changes = x.apply(changes, l)
		}
		for r := range x.byAddr.all() {
			if _, ok := listed[r.addr]; !ok && r.version <= version {
				changes = x.drop(changes, r)
			}
		}
		for a, v := range x.deleted {
			if _, ok := listed[a]; !ok && v <= version {
				delete(x.deleted, a)
			}
		}
		x.reached(version)
		return changes
	})
	return restored
}

// rewritten reports whether a list that is not older than an entry shows that the store was put back: a list is never
// behind its own version, and a version is written once. The entry of a later holder has the version of another's object.
func (x *Index) rewritten(r *record, l Lease) bool {
	_, behind := x.behind[l.Addr]
	return l.Version < r.version || l.Version == r.version && !behind && nanos(l.Updated) != r.updated
}

// apply enters a lease unless something newer is known.
func (x *Index) apply(changes []change, l Lease) []change {
	if v, ok := x.deleted[l.Addr]; ok {
		if l.Version <= v {
			return changes
		}
		delete(x.deleted, l.Addr)
	}
	old := x.record(l.Addr)
	if old != nil && old.version >= l.Version && !failpoint.Broken("version") {
		return changes
	}
	r := pack(l)
	if old != nil && old.epoch == x.epoch && r.continues(old) {
		r.bound = cmp.Or(old.bound, old.version)
	}
	return append(changes, x.put(old, r, false))
}

// continues reports whether somebody else wrote the object of a holding, as kubectl label and kubectl delete do. They do not write
// down with which version its holder got the address. An entry remembers it: that tells the first of two leases of a container.
func (r *record) continues(old *record) bool {
	return r.state == Active && r.bound == 0 && r.updated == old.updated && r.started == old.started && r.ifName == old.ifName && sameHolder(r, old)
}

// put makes r the entry of its address in place of old, if there was one. restored says that r is of a store that was put
// back to an older state, in which old was not yet. Who had the address later than r says has it still: an entry that is
// free is missing, and one of an earlier holder is his, with the version of the object that must be written again.
func (x *Index) put(old, r *record, restored bool) change {
	known := x.missing[r.addr]
	if old != nil {
		if _, behind := x.behind[r.addr]; (behind || restored) && old.state != Available {
			known = old
		}
		x.unlink(old)
	}
	delete(x.behind, r.addr)
	later := known != nil && precedes(r, known) && !failpoint.Broken("earlier")
	if later && r.state != Available && !sameHolder(known, r) {
		r = pack(Restore(known.lease(), r.lease()))
		if !failpoint.Broken("behind") {
			x.behind[r.addr] = struct{}{}
		}
	}
	r.epoch = x.epoch
	x.link(r)
	if old != nil && r.state == Available && (later && known == old || emptied(old, r)) {
		x.markMissing(old)
	}
	x.resolveMissing(r)
	x.refreshDerived(r.addr)
	return change{r.addr, old, r}
}

func (x *Index) drop(changes []change, r *record) []change {
	delete(x.behind, r.addr)
	x.unlink(r)
	if !failpoint.Broken("lost") {
		x.markMissing(r)
	}
	x.refreshDerived(r.addr)
	return append(changes, change{r.addr, r, nil})
}

// refreshDerived brings everything that is derived from an entry up to date after it changed.
func (x *Index) refreshDerived(a netip.Addr) {
	x.resolveOverlaps()
	x.refresh(a)
}
