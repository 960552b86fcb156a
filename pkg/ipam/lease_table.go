package ipam

import (
	"hash/maphash"
	"iter"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// leaseTable finds the entries of addresses by what they are looked for. Each address has at most one entry. An entry
// is in every table whose key it has, and what is Available is found by its address and by the pod that had it last.
type leaseTable struct {
	seed         maphash.Seed
	byAddr       table
	byContainer  table // of held addresses, like the next two
	byAttachment table
	byKey        table // of the addresses that claims have for one pod
	byLast       table // of the addresses that are Available, by the UID of the pod that had them last
	byHost       map[netip.Addr]map[*record]struct{}
	second       secondTable
	// contested are the addresses with a report that somebody else answers for them, in use or not.
	contested map[*record]struct{}
}

// newLeaseTable returns tables without entries.
func newLeaseTable() leaseTable {
	x := leaseTable{seed: maphash.MakeSeed(), byHost: map[netip.Addr]map[*record]struct{}{}, second: newSecondTable(),
		contested: map[*record]struct{}{}}
	hash := hasher{x.seed}
	x.byAddr = table{
		hash: func(r *record) uint64 { return hash.addr(r.addr) },
		next: func(r *record) **record { return &r.nextAddr },
	}
	x.byContainer = table{
		hash: func(r *record) uint64 { return hash.container(r.container()) },
		next: func(r *record) **record { return &r.nextContainer },
	}
	x.byAttachment = table{
		hash: func(r *record) uint64 { return hash.attachment(r.owner(), r.uid()) },
		next: func(r *record) **record { return &r.nextAttachment },
	}
	x.byLast = table{
		hash: func(r *record) uint64 { return hash.last(r.lastUID()) },
		next: func(r *record) **record { return &r.nextAttachment },
	}
	x.byKey = table{
		hash: func(r *record) uint64 { return hash.key(r.claim(), r.key()) },
		next: func(r *record) **record { return &r.extra.nextKey },
	}
	return x
}

// enter adds an entry to the tables.
func (x *leaseTable) enter(r *record) {
	x.byAddr.add(r)
	if r.extra != nil && r.extra.conflict != nil {
		x.contested[r] = struct{}{}
	}
	if r.state == lease.Available {
		if r.lastUID() != "" {
			x.byLast.add(r)
		}
		return
	}
	if r.container().bytes != "" {
		x.byContainer.add(r)
	}
	if r.owner() != "" || r.uid().bytes != "" {
		x.byAttachment.add(r)
	}
	if r.claim() != "" && r.key() != "" {
		x.byKey.add(r)
	}
	for h := range r.hosts() {
		if x.byHost[h] == nil {
			x.byHost[h] = map[*record]struct{}{}
		}
		x.byHost[h][r] = struct{}{}
	}
	x.second.enter(r)
}

// leave takes an entry out of the tables.
func (x *leaseTable) leave(r *record) {
	x.byAddr.remove(r)
	delete(x.contested, r)
	if r.state == lease.Available {
		if r.lastUID() != "" {
			x.byLast.remove(r)
		}
		return
	}
	if r.container().bytes != "" {
		x.byContainer.remove(r)
	}
	if r.owner() != "" || r.uid().bytes != "" {
		x.byAttachment.remove(r)
	}
	if r.claim() != "" && r.key() != "" {
		x.byKey.remove(r)
	}
	for h := range r.hosts() {
		delete(x.byHost[h], r)
		if len(x.byHost[h]) == 0 {
			delete(x.byHost, h)
		}
	}
	x.second.leave(r)
}

// record returns the entry of an address, nil when it has none.
func (x *leaseTable) record(a netip.Addr) *record {
	for r := x.byAddr.first(x.hash().addr(a)); r != nil; r = r.nextAddr {
		if r.addr == a {
			return r
		}
	}
	return nil
}

// ofContainer returns the first of the entries that may be those of a container, by the hash of its ID.
func (x *leaseTable) ofContainer(id compact) *record {
	return x.byContainer.first(x.hash().container(id))
}

// lastHad returns the entries of the addresses that are Available and that an interface of a pod had last.
func (x *leaseTable) lastHad(podUID, ifName string) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for r := x.byLast.first(x.hash().last(podUID)); r != nil; r = r.nextAttachment {
			if uid, name := r.history().LastAttachment(); uid == podUID && name == ifName && !yield(r) {
				return
			}
		}
	}
}

// keyed yields the entries of a claim that are for one pod of it, by its primary key.
func (x *leaseTable) keyed(claim, key string) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for r := x.byKey.first(x.hash().key(claim, key)); r != nil; r = r.extra.nextKey {
			if r.claim() == claim && r.key() == key && !yield(r) {
				return
			}
		}
	}
}

func (x *leaseTable) hash() hasher { return hasher{x.seed} }

// hasher hashes the keys of the tables.
type hasher struct{ seed maphash.Seed }

func (h hasher) addr(a netip.Addr) uint64 {
	b := a.As16()
	return maphash.Bytes(h.seed, b[:])
}

func (h hasher) container(id compact) uint64 { return maphash.String(h.seed, id.bytes) }

func (h hasher) attachment(owner string, uid compact) uint64 {
	if owner != "" {
		return maphash.String(h.seed, owner)
	}
	return maphash.String(h.seed, uid.bytes)
}

func (h hasher) last(podUID string) uint64 { return maphash.String(h.seed, podUID) }

func (h hasher) key(claim, key string) uint64 {
	return maphash.Comparable(h.seed, [2]string{claim, key})
}
