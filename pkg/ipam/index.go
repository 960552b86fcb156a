package ipam

import (
	"hash/maphash"
	"net/netip"
	"sync"

	"github.com/google/btree"
)

// Index is the memory of the allocator: every address that has an object, every pool, and which
// addresses are free. It is fed from the watch of the objects and from the writes of this process,
// and is nothing but their digest: it is rebuilt from the objects at any time.
//
// Invariants: an entry changes only to a higher version of its epoch, or to one of the next. An address is free in its pool's set exactly
// when occupied says no and, once its cooldowns have expired, it does not cool. Every address is served by at most one pool.
type Index struct {
	mu           sync.RWMutex
	seed         maphash.Seed
	byAddr       table
	byContainer  table // of held addresses, like the next two
	byAttachment table
	byKey        table // of the addresses that claims have for one pod
	byClaim      map[string]*claimed
	freeNodes    *btree.FreeListG[*record] // of the trees of all claims
	byHost       map[netip.Addr]map[*record]struct{}
	byPool       map[string]*members

	// deleted holds the versions of objects that this process deleted until the watch says so too.
	deleted map[netip.Addr]uint64
	// now is the time of whoever looked last, in Unix nanoseconds.
	now int64
	// seen is the version that the watch has reached, in this epoch.
	seen    uint64
	epoch   uint32
	waiters []*waiter

	// inUse counts the addresses in use, and those missing that were, by where they are; coming are those that are held
	// for a host.
	inUse  map[hostPool]int
	coming map[hostPool][]netip.Addr

	// charged counts, by pool and namespace, the addresses that count for namespaces, those missing and those being given
	// included.
	charged map[string]map[string]int

	// missing are the addresses whose object went while they were held.
	missing map[netip.Addr]*record
	// behind are the addresses whose object names an earlier holder than the entry does.
	behind map[netip.Addr]struct{}
	// returning counts the restores of the store for which nothing new is given at present.
	returning int

	assumed map[netip.Addr]Assumed
	unknown int
	nodes   map[string][]netip.Addr
	nodeIP  map[netip.Addr][]string // names of the nodes, sorted

	pools map[string]*poolState
	// rebuilding says of pools that hand out nothing until something has happened what that is.
	rebuilding map[string]string
	segments   []segment
	// Where requests look for pools, in the order of preference: those bound to a namespace, those of a
	// host that are bound to none, those of a network.
	bound   map[string][]*poolState
	unbound hostTable
	// boundHosts has the pools of hosts that are bound to namespaces.
	boundHosts hostTable
	// open are all those that are bound to none.
	open     []*poolState
	networks map[string][]*poolState
	// plans counts the changes of pools, rebuilds how often it was worked out what one serves.
	plans, rebuilds uint64

	staleOverlaps []*overlap

	subscribers []func(old, new Lease)
}

// members are the addresses whose object names one pool, whether or not that pool exists.
type members struct {
	records          map[*record]struct{}
	active, reserved int
	// kept are the reserved ones that are for a claim.
	retained int
	// draining are the held ones that are no longer in the pool's plan.
	draining map[*record]struct{}
}

// drains says whether a held address is outside what its pool, if there is one, has now.
func (x *Index) drains(r *record) bool {
	p := x.pools[r.params.Value().Pool]
	return p != nil && p.Valid() && r.state != Available && !p.Plan.Usable.Contains(r.addr)
}

// findDraining looks at all addresses of a pool whose plan has changed.
func (x *Index) findDraining(pool string) {
	m := x.byPool[pool]
	if m == nil {
		return
	}
	clear(m.draining)
	for r := range m.records {
		if x.drains(r) {
			m.draining[r] = struct{}{}
		}
	}
}

// NewIndex makes an empty index.
func NewIndex() *Index {
	x := &Index{
		seed:       maphash.MakeSeed(),
		byClaim:    map[string]*claimed{},
		freeNodes:  btree.NewFreeListG[*record](btree.DefaultFreeListSize),
		byHost:     map[netip.Addr]map[*record]struct{}{},
		byPool:     map[string]*members{},
		deleted:    map[netip.Addr]uint64{},
		missing:    map[netip.Addr]*record{},
		behind:     map[netip.Addr]struct{}{},
		inUse:      map[hostPool]int{},
		coming:     map[hostPool][]netip.Addr{},
		charged:    map[string]map[string]int{},
		assumed:    map[netip.Addr]Assumed{},
		nodes:      map[string][]netip.Addr{},
		nodeIP:     map[netip.Addr][]string{},
		pools:      map[string]*poolState{},
		rebuilding: map[string]string{},
		bound:      map[string][]*poolState{},
		unbound:    newHostTable(),
		boundHosts: newHostTable(),
		networks:   map[string][]*poolState{},
	}
	x.byAddr = table{
		hash: func(r *record) uint64 { return x.hashAddr(r.addr) },
		next: func(r *record) **record { return &r.nextAddr },
	}
	x.byContainer = table{
		hash: func(r *record) uint64 { return x.hashContainer(r.container()) },
		next: func(r *record) **record { return &r.nextContainer },
	}
	x.byAttachment = table{
		hash: func(r *record) uint64 { return x.hashAttachment(r.owner(), r.uid()) },
		next: func(r *record) **record { return &r.nextAttachment },
	}
	x.byKey = table{
		hash: func(r *record) uint64 { return x.hashKey(r.claim(), r.key()) },
		next: func(r *record) **record { return &r.extra.nextKey },
	}
	return x
}

func (x *Index) hashAddr(a netip.Addr) uint64 {
	b := a.As16()
	return maphash.Bytes(x.seed, b[:])
}

func (x *Index) hashContainer(id compact) uint64 { return maphash.String(x.seed, id.bytes) }

func (x *Index) hashAttachment(owner string, uid compact) uint64 {
	if owner != "" {
		return maphash.String(x.seed, owner)
	}
	return maphash.String(x.seed, uid.bytes)
}

func (x *Index) hashKey(claim, key string) uint64 {
	return maphash.Comparable(x.seed, [2]string{claim, key})
}

// record is the entry of an address, nil when it has none.
func (x *Index) record(a netip.Addr) *record {
	for r := x.byAddr.first(x.hashAddr(a)); r != nil; r = r.nextAddr {
		if r.addr == a {
			return r
		}
	}
	return nil
}

// Subscribe has fn called after every change of an entry, outside the index's lock and possibly from
// several goroutines at once. An entry without an object is given as a Lease of version 0. Subscribe
// before the index is fed.
func (x *Index) Subscribe(fn func(old, new Lease)) { x.subscribers = append(x.subscribers, fn) }

func (x *Index) link(r *record) {
	x.adjustCharges(r.addr, nil, -1)
	x.byAddr.add(r)
	x.adjustCharges(r.addr, r, +1)
	x.count(r, +1)
	x.adjustUsage(r, +1)
	if r.state == Available {
		return
	}
	if r.container().bytes != "" {
		x.byContainer.add(r)
	}
	if r.owner() != "" || r.uid().bytes != "" {
		x.byAttachment.add(r)
	}
	if r.claim() != "" {
		x.addClaimed(r)
		if r.key() != "" {
			x.byKey.add(r)
		}
	}
	if h := r.host.Value(); h.IsValid() {
		if x.byHost[h] == nil {
			x.byHost[h] = map[*record]struct{}{}
		}
		x.byHost[h][r] = struct{}{}
	}
}

func (x *Index) unlink(r *record) {
	x.adjustCharges(r.addr, r, -1)
	x.byAddr.remove(r)
	x.adjustCharges(r.addr, nil, +1)
	x.count(r, -1)
	x.adjustUsage(r, -1)
	if r.state == Available {
		return
	}
	if r.container().bytes != "" {
		x.byContainer.remove(r)
	}
	if r.owner() != "" || r.uid().bytes != "" {
		x.byAttachment.remove(r)
	}
	if r.claim() != "" {
		x.removeClaimed(r)
		if r.key() != "" {
			x.byKey.remove(r)
		}
	}
	h := r.host.Value()
	delete(x.byHost[h], r)
	if len(x.byHost[h]) == 0 {
		delete(x.byHost, h)
	}
}

func (x *Index) count(r *record, by int) {
	name := r.params.Value().Pool
	m := x.byPool[name]
	if m == nil {
		m = &members{records: map[*record]struct{}{}, draining: map[*record]struct{}{}}
		x.byPool[name] = m
	}
	if by > 0 {
		m.records[r] = struct{}{}
		if x.drains(r) {
			m.draining[r] = struct{}{}
		}
	} else {
		delete(m.records, r)
		delete(m.draining, r)
	}
	switch r.state {
	case Active:
		m.active += by
	case Reserved:
		if m.reserved += by; r.claim() != "" {
			m.retained += by
		}
	case Available:
	}
	if r.state != Available {
		x.countOverlaps(name, r.addr, by)
	}
	if len(m.records) == 0 {
		delete(x.byPool, name)
	}
}
