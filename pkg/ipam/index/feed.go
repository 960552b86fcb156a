package index

import (
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// Rewritten reports whether an object that was read has the version of the index's entry, and is another: the store was
// put back to an older state. An entry of a later version says nothing, as it may have come since.
func (x *Feed) Rewritten(l lease.Lease) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	r := x.core.state.Leases.Record(l.Addr)
	return r != nil && r.Version == l.Version && x.core.state.Missing.Rewritten(r, l)
}

// Feed takes what the watch delivers and what this process writes. An entry changes only to a higher version of its
// epoch, or to one of the next.
type Feed struct {
	core        *core
	subscribers []func(old, new lease.Lease)
}

// Subscribe adds a function that is called after every change of an entry, outside the index's lock and possibly from
// several goroutines at once. An entry without an object is given as a Lease of version 0. Subscribe before the index
// is fed.
func (x *Feed) Subscribe(fn func(old, new lease.Lease)) { x.subscribers = append(x.subscribers, fn) }

// update changes the index, and then calls the subscribers outside the lock.
func (x *Feed) update(do func() []ledger.Change) {
	x.core.mu.Lock()
	changes := do()
	x.core.mu.Unlock()
	if len(x.subscribers) == 0 {
		return
	}
	for _, c := range changes {
		old, new := ledger.LeaseOf(c.Addr, c.Old), ledger.LeaseOf(c.Addr, c.New)
		for _, fn := range x.subscribers {
			fn(old, new)
		}
	}
}

// Watched takes an object that the watch delivered. The watch delivers in the order of versions: an
// event that it has passed already is old news.
func (x *Feed) Watched(l lease.Lease) {
	x.update(func() (changes []ledger.Change) {
		if l.Version > x.core.state.Progress.Seen {
			changes = x.core.state.Apply(changes, l)
			x.core.state.Progress.Reached(l.Version)
		}
		return changes
	})
}

// WatchedDelete takes the deletion of an object that the watch delivered; version is the deletion's.
func (x *Feed) WatchedDelete(a netip.Addr, version uint64) {
	x.update(func() (changes []ledger.Change) {
		if x.core.state.Progress.Deleted[a] < version {
			delete(x.core.state.Progress.Deleted, a)
		}
		if r := x.core.state.Leases.Record(a); r != nil && r.Version <= version {
			changes = x.core.state.Drop(changes, r)
		}
		x.core.state.Progress.Reached(version)
		return changes
	})
}

// Wrote takes the result of a write of this process. What the watch has passed already is old news:
// it was delivered, or replaced by something newer. So is an answer of an earlier epoch.
func (x *Feed) Wrote(l lease.Lease) {
	x.update(func() (changes []ledger.Change) {
		if l.Version > x.core.state.Progress.Seen && x.core.state.Progress.Present(l.Epoch) {
			changes = x.core.state.Apply(changes, l)
		}
		return changes
	})
}

// WroteDelete records that this process deleted the object of an address at the given version, or found that it is
// gone. The note stays until the watch delivers the deletion, so that neither a late event nor a late answer to an
// earlier write can bring it back. Where the watch has passed the version and the index shows something else, the
// deletion was delivered already. A version of an earlier epoch says nothing: noted, it would hide the object until
// the versions have come that far again.
func (x *Feed) WroteDelete(a netip.Addr, version uint64, epoch uint32) {
	x.update(func() (changes []ledger.Change) {
		r := x.core.state.Leases.Record(a)
		switch {
		case !x.core.state.Progress.Present(epoch):
			return nil
		case r != nil && r.Version > version:
			return nil
		case (r == nil || r.Version < version) && version <= x.core.state.Progress.Seen:
			return nil
		}
		x.core.state.Progress.Deleted[a] = max(x.core.state.Progress.Deleted[a], version)
		if r != nil {
			changes = x.core.state.Drop(changes, r)
		}
		return changes
	})
}

// Replace takes a full list as of version: entries that it does not hold go, unless they are newer than the list. A
// list older than what the watch delivered changes nothing. It reports whether the list shows that the store was put
// back to an older state, and its versions were raised so that everybody lists: then it is taken as by ResetTo.
func (x *Feed) Replace(all []lease.Lease, version uint64) (restored bool) {
	x.update(func() (changes []ledger.Change) {
		if version < x.core.state.Progress.Seen {
			return nil
		}
		if restored = x.contradicted(all, version); restored {
			return x.reset(all, version)
		}
		listed := make(map[netip.Addr]struct{}, len(all))
		for _, l := range all {
			listed[l.Addr] = struct{}{}
			changes = x.core.state.Apply(changes, l)
		}
		for r := range x.core.state.Leases.ByAddr.All() {
			if _, ok := listed[r.Addr]; !ok && r.Version <= version {
				changes = x.core.state.Drop(changes, r)
			}
		}
		for a, v := range x.core.state.Progress.Deleted {
			if _, ok := listed[a]; !ok && v <= version {
				delete(x.core.state.Progress.Deleted, a)
			}
		}
		x.core.state.Progress.Reached(version)
		return changes
	})
	return restored
}

// contradicted reports whether a list as of version has an older or another object than an entry that is not newer.
func (x *Feed) contradicted(all []lease.Lease, version uint64) bool {
	return slices.ContainsFunc(all, func(l lease.Lease) bool {
		r := x.core.state.Leases.Record(l.Addr)
		return r != nil && r.Version <= version && x.core.state.Missing.Rewritten(r, l)
	})
}
