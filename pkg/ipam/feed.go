package ipam

import "net/netip"

// Watched takes an object that the watch delivered. The watch delivers in the order of versions: an
// event that it has passed already is old news.
func (x *Index) Watched(l Lease) {
	x.mu.Lock()
	if l.Version <= x.seen {
		x.mu.Unlock()
		return
	}
	old, changed := x.apply(l)
	x.reached(l.Version)
	x.mu.Unlock()
	if changed {
		x.notify(old, l)
	}
}

// WatchedDelete takes the deletion of an object that the watch delivered; version is the deletion's.
func (x *Index) WatchedDelete(a netip.Addr, version uint64) {
	x.mu.Lock()
	if x.deleted[a] < version {
		delete(x.deleted, a)
	}
	old := Lease{Addr: a}
	r := x.record(a)
	found := r != nil && r.version <= version
	if found {
		old = r.lease()
		x.drop(r)
	}
	x.reached(version)
	x.mu.Unlock()
	if found {
		x.notify(old, Lease{Addr: a})
	}
}

// Wrote takes the result of a write of this process. What the watch has passed already is old news:
// it was delivered, or replaced by something newer.
func (x *Index) Wrote(l Lease) {
	x.mu.Lock()
	if l.Version <= x.seen {
		x.mu.Unlock()
		return
	}
	old, changed := x.apply(l)
	x.mu.Unlock()
	if changed {
		x.notify(old, l)
	}
}

// WroteDelete takes note that this process deleted the object of an address at the given version.
// The note stays until the watch delivers the deletion, so that neither a late event nor a late answer
// to an earlier write can bring it back. Where the watch has passed the version and the index shows
// something else, the deletion was delivered already.
func (x *Index) WroteDelete(a netip.Addr, version uint64) {
	x.mu.Lock()
	r := x.record(a)
	found := r != nil
	if found && r.version > version || (!found || r.version < version) && version <= x.seen {
		x.mu.Unlock()
		return
	}
	x.deleted[a] = max(x.deleted[a], version)
	old := Lease{Addr: a}
	if found {
		old = r.lease()
		x.drop(r)
	}
	x.mu.Unlock()
	if found {
		x.notify(old, Lease{Addr: a})
	}
}

// Replace takes a full list as of version: entries that it does not hold go, unless they are newer
// than the list. A list older than what the watch delivered changes nothing.
func (x *Index) Replace(all []Lease, version uint64) {
	type change struct{ old, new Lease }
	var changes []change
	x.mu.Lock()
	if version < x.seen {
		x.mu.Unlock()
		return
	}
	listed := make(map[netip.Addr]struct{}, len(all))
	for _, l := range all {
		listed[l.Addr] = struct{}{}
		if old, changed := x.apply(l); changed {
			changes = append(changes, change{old, l})
		}
	}
	for r := range x.byAddr.all() {
		if _, ok := listed[r.addr]; !ok && r.version <= version {
			changes = append(changes, change{r.lease(), Lease{Addr: r.addr}})
			x.drop(r)
		}
	}
	for a, v := range x.deleted {
		if _, ok := listed[a]; !ok && v <= version {
			delete(x.deleted, a)
		}
	}
	x.reached(version)
	x.mu.Unlock()
	for _, c := range changes {
		x.notify(c.old, c.new)
	}
}

func (x *Index) apply(l Lease) (old Lease, changed bool) {
	if v, ok := x.deleted[l.Addr]; ok {
		if l.Version <= v {
			return old, false
		}
		delete(x.deleted, l.Addr)
	}
	old = Lease{Addr: l.Addr}
	if r := x.record(l.Addr); r != nil {
		if r.version >= l.Version {
			return old, false
		}
		old = r.lease()
		x.unlink(r)
	}
	x.link(pack(l))
	x.settle(l.Addr)
	return old, true
}

func (x *Index) drop(r *record) {
	x.unlink(r)
	x.settle(r.addr)
}

// settle brings everything that is derived from an entry up to date after it changed.
func (x *Index) settle(a netip.Addr) {
	x.resolveOverlaps()
	x.refresh(a)
}
