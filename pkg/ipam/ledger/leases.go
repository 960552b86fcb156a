package ledger

import (
	"hash/maphash"
	"iter"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Leases finds the entries of addresses by their keys. Each address has at most one entry. An entry is in every table
// whose key it has. An Available address is found only by its address and by the pod that had it last. Check verifies
// this.
type Leases struct {
	seed         maphash.Seed
	ByAddr       table
	byContainer  table // of held addresses, like the next two
	byAttachment table
	byKey        table // of the addresses that claims have for one pod
	byLast       table // of the addresses that are Available, by the UID of the pod that had them last
	ByHost       map[netip.Addr]map[*Record]struct{}
	Second       secondTable
	// Contested are the addresses with a report that somebody else answers for them, in use or not.
	Contested map[*Record]struct{}
}

// NewLeases returns tables without entries.
func NewLeases() Leases {
	x := Leases{seed: maphash.MakeSeed(), ByHost: map[netip.Addr]map[*Record]struct{}{}, Second: newSecondTable(),
		Contested: map[*Record]struct{}{}}
	hash := hasher{x.seed}
	x.ByAddr = table{
		hash: func(r *Record) uint64 { return hash.addr(r.Addr) },
		next: func(r *Record) **Record { return &r.NextAddr },
	}
	x.byContainer = table{
		hash: func(r *Record) uint64 { return hash.container(r.Container()) },
		next: func(r *Record) **Record { return &r.NextContainer },
	}
	x.byAttachment = table{
		hash: func(r *Record) uint64 { return hash.attachment(r.Owner(), r.UID()) },
		next: func(r *Record) **Record { return &r.nextAttachment },
	}
	x.byLast = table{
		hash: func(r *Record) uint64 { return hash.last(r.LastUID()) },
		next: func(r *Record) **Record { return &r.nextAttachment },
	}
	x.byKey = table{
		hash: func(r *Record) uint64 { return hash.key(r.Claim(), r.key()) },
		next: func(r *Record) **Record { return &r.extra.nextKey },
	}
	return x
}

// Enter adds an entry to the tables.
func (x *Leases) Enter(r *Record) {
	x.ByAddr.add(r)
	if r.extra != nil && r.extra.conflict != nil {
		x.Contested[r] = struct{}{}
	}
	if r.State == lease.Available {
		if r.LastUID() != "" {
			x.byLast.add(r)
		}
		return
	}
	if r.Container().Bytes != "" {
		x.byContainer.add(r)
	}
	if r.Owner() != "" || r.UID().Bytes != "" {
		x.byAttachment.add(r)
	}
	if r.Claim() != "" && r.key() != "" {
		x.byKey.add(r)
	}
	for h := range r.EachHost() {
		if x.ByHost[h] == nil {
			x.ByHost[h] = map[*Record]struct{}{}
		}
		x.ByHost[h][r] = struct{}{}
	}
	x.Second.enter(r)
}

// Leave takes an entry out of the tables.
func (x *Leases) Leave(r *Record) {
	x.ByAddr.remove(r)
	delete(x.Contested, r)
	if r.State == lease.Available {
		if r.LastUID() != "" {
			x.byLast.remove(r)
		}
		return
	}
	if r.Container().Bytes != "" {
		x.byContainer.remove(r)
	}
	if r.Owner() != "" || r.UID().Bytes != "" {
		x.byAttachment.remove(r)
	}
	if r.Claim() != "" && r.key() != "" {
		x.byKey.remove(r)
	}
	for h := range r.EachHost() {
		delete(x.ByHost[h], r)
		if len(x.ByHost[h]) == 0 {
			delete(x.ByHost, h)
		}
	}
	x.Second.leave(r)
}

// Record returns the entry of an address, nil when it has none.
func (x *Leases) Record(a netip.Addr) *Record {
	for r := x.ByAddr.first(x.hash().addr(a)); r != nil; r = r.NextAddr {
		if r.Addr == a {
			return r
		}
	}
	return nil
}

// OfContainer returns the head of the chain that has the entries of a container. Entries of other containers are on it,
// too.
func (x *Leases) OfContainer(id ID) *Record {
	return x.byContainer.first(x.hash().container(id))
}

// LastHad returns the entries of the addresses that are Available and that an interface of a pod had last.
func (x *Leases) LastHad(podUID, ifName string) iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		for r := x.byLast.first(x.hash().last(podUID)); r != nil; r = r.nextAttachment {
			if uid, name := r.History().LastAttachment(); uid == podUID && name == ifName && !yield(r) {
				return
			}
		}
	}
}

// Keyed yields the entries of a claim that are for one pod of it, by its primary key.
func (x *Leases) Keyed(claim, key string) iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		for r := x.byKey.first(x.hash().key(claim, key)); r != nil; r = r.extra.nextKey {
			if r.Claim() == claim && r.key() == key && !yield(r) {
				return
			}
		}
	}
}

func (x *Leases) hash() hasher { return hasher{x.seed} }

// hasher hashes the keys of the tables.
type hasher struct{ seed maphash.Seed }

func (h hasher) addr(a netip.Addr) uint64 {
	b := a.As16()
	return maphash.Bytes(h.seed, b[:])
}

func (h hasher) container(id ID) uint64 { return maphash.String(h.seed, id.Bytes) }

func (h hasher) attachment(owner string, uid ID) uint64 {
	if owner != "" {
		return maphash.String(h.seed, owner)
	}
	return maphash.String(h.seed, uid.Bytes)
}

func (h hasher) last(podUID string) uint64 { return maphash.String(h.seed, podUID) }

func (h hasher) key(claim, key string) uint64 {
	return maphash.Comparable(h.seed, [2]string{claim, key})
}
