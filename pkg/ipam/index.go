package ipam

import (
	"net/netip"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// Index is the memory of the allocator: every address that has an object, every pool, and which
// addresses are free. It is fed from the watch of the objects and from the writes of this process,
// and is nothing but their digest: it is rebuilt from the objects at any time.
//
// Invariants: an entry changes only to a higher version. An address is free in its pool's set exactly
// when occupied says no. Every address is served by at most one pool.
type Index struct {
	mu           sync.RWMutex
	byAddr       map[netip.Addr]*record
	byContainer  map[uint64]*record
	byAttachment map[uint64]*record
	byHost       map[netip.Addr]map[*record]struct{}
	byPool       map[string]*members

	// deleted holds the versions of objects that this process deleted until the watch says so too.
	deleted map[netip.Addr]uint64
	// seen is the version that the watch has reached.
	seen    uint64
	waiters []waiter

	holds  map[netip.Addr]Hold
	doubts int
	nodes  map[string][]netip.Addr
	nodeIP map[netip.Addr][]string // names of the nodes, sorted

	pools    map[string]*poolState
	segments []segment
	// Where requests look for pools, in the order of preference: those bound to a namespace, those of a
	// host that are bound to none, those of a network.
	bound    map[string][]*poolState
	unbound  map[netip.Addr][]*poolState
	networks map[string][]*poolState

	staleOverlaps []*overlap

	subscribers []func(old, new Lease)
}

// members are the addresses whose object names one pool, whether or not that pool exists.
type members struct {
	records          map[*record]struct{}
	active, reserved int
}

// NewIndex makes an empty index.
func NewIndex() *Index {
	return &Index{
		byAddr:       map[netip.Addr]*record{},
		byContainer:  map[uint64]*record{},
		byAttachment: map[uint64]*record{},
		byHost:       map[netip.Addr]map[*record]struct{}{},
		byPool:       map[string]*members{},
		deleted:      map[netip.Addr]uint64{},
		holds:        map[netip.Addr]Hold{},
		nodes:        map[string][]netip.Addr{},
		nodeIP:       map[netip.Addr][]string{},
		pools:        map[string]*poolState{},
		bound:        map[string][]*poolState{},
		unbound:      map[netip.Addr][]*poolState{},
		networks:     map[string][]*poolState{},
	}
}

// Subscribe has fn called after every change of an entry, outside the index's lock and possibly from
// several goroutines at once. An entry without an object is given as a Lease of version 0. Subscribe
// before the index is fed.
func (x *Index) Subscribe(fn func(old, new Lease)) { x.subscribers = append(x.subscribers, fn) }

func (x *Index) notify(old, new Lease) {
	for _, fn := range x.subscribers {
		fn(old, new)
	}
}

func (x *Index) link(r *record) {
	x.count(r, +1)
	if r.state == Available {
		return
	}
	if id := r.containerID(); id != "" {
		k := xxhash.Sum64String(id)
		r.nextContainer, x.byContainer[k] = x.byContainer[k], r
	}
	if at := r.attachment(); at != "" {
		k := xxhash.Sum64String(at)
		r.nextAttachment, x.byAttachment[k] = x.byAttachment[k], r
	}
	if h := r.host.Value(); h.IsValid() {
		if x.byHost[h] == nil {
			x.byHost[h] = map[*record]struct{}{}
		}
		x.byHost[h][r] = struct{}{}
	}
}

func (x *Index) unlink(r *record) {
	x.count(r, -1)
	if r.state == Available {
		return
	}
	if id := r.containerID(); id != "" {
		unchain(x.byContainer, xxhash.Sum64String(id), r, func(r *record) **record { return &r.nextContainer })
	}
	if at := r.attachment(); at != "" {
		unchain(x.byAttachment, xxhash.Sum64String(at), r, func(r *record) **record { return &r.nextAttachment })
	}
	h := r.host.Value()
	delete(x.byHost[h], r)
	if len(x.byHost[h]) == 0 {
		delete(x.byHost, h)
	}
}

func unchain(heads map[uint64]*record, k uint64, r *record, next func(*record) **record) {
	if heads[k] == r {
		if heads[k] = *next(r); heads[k] == nil {
			delete(heads, k)
		}
	}
	for p := heads[k]; p != nil; p = *next(p) {
		if *next(p) == r {
			*next(p) = *next(r)
		}
	}
	*next(r) = nil
}

func (x *Index) count(r *record, by int) {
	name := r.params.Value().Pool
	m := x.byPool[name]
	if m == nil {
		m = &members{records: map[*record]struct{}{}}
		x.byPool[name] = m
	}
	if by > 0 {
		m.records[r] = struct{}{}
	} else {
		delete(m.records, r)
	}
	switch r.state {
	case Active:
		m.active += by
	case Reserved:
		m.reserved += by
	}
	if r.state != Available {
		x.countOverlaps(name, r.addr, by)
	}
	if len(m.records) == 0 {
		delete(x.byPool, name)
	}
}
