package index

import (
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// Filter selects which addresses a list is about. What is empty or zero says nothing.
type Filter struct {
	ContainerID, IfName string
	Namespace, PodName  string
	Owner, Pool         string
	// Status is a State as text.
	Status string
	Host   netip.Addr
	// OnHosts are the hosts whose leases are shown; nil for all, and for those on no host.
	OnHosts []netip.Addr
}

// on reports whether a lease of a host is shown.
func (f *Filter) on(host netip.Addr) bool {
	return (!f.Host.IsValid() || host == f.Host) && (f.OnHosts == nil || slices.Contains(f.OnHosts, host))
}

// match reports whether an entry matches as one of its attachments has it, and which one: the first rather than the
// second.
func (f *Filter) match(r *ledger.Record, container ledger.ID) (at ledger.Attachment, ok bool) {
	equal := func(filter, value string) bool { return filter == "" || filter == value }
	if !equal(f.Namespace, r.Namespace.Value()) || !equal(f.Owner, r.Owner()) || !equal(f.Pool,
		r.Params.Value().Pool) ||
		!equal(f.Status, r.State.String()) {
		return ledger.Attachment{Record: r, Second: false}, false
	}
	if (f.ContainerID == "" || r.Container() == container) && equal(f.IfName, r.IfName()) &&
		equal(f.PodName, r.PodName()) && f.on(r.Host.Value()) {
		return ledger.Attachment{Record: r, Second: false}, true
	}
	h := r.Other()
	return ledger.Attachment{Record: r, Second: true}, h != nil &&
		(f.ContainerID == "" || ledger.PackHex(h.ContainerID) == container) &&
		equal(f.IfName, h.IfName) && equal(f.PodName, h.PodName) && f.on(h.Host)
}

// Page returns the first so many addresses behind one, in order, that have an object and match, each once, seen from
// the attachment that does. total counts all that match, and more reports whether there are any behind the page. It
// takes memory only for the page, and holds the index for a part of it at a time: of each address it sees one entry, of
// different ones such as there were at different moments.
func (x *Leases) Page(f Filter, after netip.Addr, limit int) (page []lease.Lease, total int, more bool) {
	var s selection
	container := ledger.PackHex(f.ContainerID)
	visit := func(r *ledger.Record) {
		if _, ok := f.match(r, container); !ok {
			return
		}
		if total++; !after.IsValid() || after.Less(r.Addr) {
			s.add(r)
		}
	}
	for again := true; again; {
		s, total = selection{most: limit + 1}, 0
		again = x.candidates(&f, container, visit)
	}
	s.cut()
	if more = len(s.records) > limit; more {
		s.records = s.records[:limit]
	}
	page = make([]lease.Lease, 0, len(s.records))
	for _, r := range s.records {
		at, _ := f.match(r, container)
		page = append(page, at.Lease())
	}
	return page, total, more
}

// candidates calls visit with every entry that may match, by the table that has fewest. grown: the table has changed
// its size on the way, and all has to be looked at again.
func (x *Leases) candidates(f *Filter, container ledger.ID, visit func(*ledger.Record)) (grown bool) {
	x.core.mu.RLock()
	var some map[*ledger.Record]struct{}
	switch {
	case f.ContainerID != "":
		defer x.core.mu.RUnlock()
		for r := x.core.state.Leases.OfContainer(container); r != nil; r = r.NextContainer {
			if r.Container() == container { // others of its chain may have it as their second one
				visit(r)
			}
		}
		for _, r := range x.core.state.Leases.Second.Containers[container] {
			visit(r)
		}
		return false
	case f.Host.IsValid():
		some = x.core.state.Leases.ByHost[f.Host]
	case f.Pool != "":
		if m := x.core.state.Members.ByPool[f.Pool]; m != nil {
			some = m.Records
		}
	default:
		x.core.mu.RUnlock()
		return x.scan(visit)
	}
	if len(some) > scanStep { // the filter is looked at for each entry, and nobody waits for all of them
		x.core.mu.RUnlock()
		return x.scan(visit)
	}
	defer x.core.mu.RUnlock()
	for r := range some {
		visit(r)
	}
	return false
}

// scanStep is the number of chains that are looked at under one lock of the index.
const scanStep = 4096

// scan calls visit with every entry. The chain of an address is the same one until the table grows.
func (x *Leases) scan(visit func(*ledger.Record)) (grown bool) {
	size := -1
	for at := 0; size < 0 || at < size; at += scanStep {
		x.core.mu.RLock()
		heads := x.core.state.Leases.ByAddr.Heads
		if size >= 0 && len(heads) != size {
			x.core.mu.RUnlock()
			return true
		}
		size = len(heads)
		for _, r := range heads[min(at, size):min(at+scanStep, size)] {
			for ; r != nil; r = r.NextAddr {
				visit(r)
			}
		}
		x.core.mu.RUnlock()
	}
	return false
}

// selection keeps the entries of the lowest addresses, at most so many after a cut.
type selection struct {
	most    int
	records []*ledger.Record
	// last is the highest address that is worth taking, once there are enough.
	last netip.Addr
}

func (s *selection) add(r *ledger.Record) {
	if s.last.IsValid() && !r.Addr.Less(s.last) {
		return
	}
	if s.records = append(s.records, r); len(s.records) >= 2*s.most {
		s.cut()
	}
}

func (s *selection) cut() {
	slices.SortFunc(s.records, func(a, b *ledger.Record) int { return a.Addr.Compare(b.Addr) })
	if len(s.records) >= s.most {
		s.records = s.records[:s.most]
		s.last = s.records[s.most-1].Addr
	}
}
