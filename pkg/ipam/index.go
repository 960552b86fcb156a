package ipam

import (
	"context"
	"net/netip"
	"slices"
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
	hosts    map[netip.Addr][]*poolState
	bound    map[string]int

	staleOverlaps []*overlap

	subscribers []func(old, new Lease)
}

// members are the addresses whose object names one pool, whether or not that pool exists.
type members struct {
	records          map[*record]struct{}
	active, reserved int
}

type waiter struct {
	version uint64
	done    chan struct{}
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
		hosts:        map[netip.Addr][]*poolState{},
		bound:        map[string]int{},
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

// Watched takes an object that the watch delivered.
func (x *Index) Watched(l Lease) {
	x.mu.Lock()
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
	r, found := x.byAddr[a]
	found = found && r.version <= version
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

// Reached takes note that the watch has delivered everything up to version.
func (x *Index) Reached(version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reached(version)
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
// The note stays until the watch delivers the deletion, so that a late event cannot bring it back.
func (x *Index) WroteDelete(a netip.Addr, version uint64) {
	x.mu.Lock()
	r, found := x.byAddr[a]
	found = found && r.version == version
	var old Lease
	if found {
		old = r.lease()
		x.deleted[a] = version
		x.drop(r)
	}
	x.mu.Unlock()
	if found {
		x.notify(old, Lease{Addr: a})
	}
}

// Replace takes a full list as of version: entries that it does not hold go, unless they are newer
// than the list.
func (x *Index) Replace(all []Lease, version uint64) {
	type change struct{ old, new Lease }
	var changes []change
	x.mu.Lock()
	listed := make(map[netip.Addr]struct{}, len(all))
	for _, l := range all {
		listed[l.Addr] = struct{}{}
		if old, changed := x.apply(l); changed {
			changes = append(changes, change{old, l})
		}
	}
	for a, r := range x.byAddr {
		if _, ok := listed[a]; !ok && r.version <= version {
			changes = append(changes, change{r.lease(), Lease{Addr: a}})
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

// WaitSeen returns when the watch has reached version, or with the context's error.
func (x *Index) WaitSeen(ctx context.Context, version uint64) error {
	x.mu.Lock()
	if x.seen >= version {
		x.mu.Unlock()
		return nil
	}
	w := waiter{version, make(chan struct{})}
	x.waiters = append(x.waiters, w)
	x.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		x.mu.Lock()
		defer x.mu.Unlock()
		x.waiters = slices.DeleteFunc(x.waiters, func(o waiter) bool { return o.done == w.done })
		return ctx.Err()
	}
}

// reached moves seen forward and wakes who waits for it. There are at most as many waiters as
// requests under way.
func (x *Index) reached(version uint64) {
	if version <= x.seen {
		return
	}
	x.seen = version
	x.waiters = slices.DeleteFunc(x.waiters, func(w waiter) bool {
		if w.version > version {
			return false
		}
		close(w.done)
		return true
	})
}

func (x *Index) apply(l Lease) (old Lease, changed bool) {
	if v, ok := x.deleted[l.Addr]; ok {
		if l.Version <= v {
			return old, false
		}
		delete(x.deleted, l.Addr)
	}
	old = Lease{Addr: l.Addr}
	if r, ok := x.byAddr[l.Addr]; ok {
		if r.version >= l.Version {
			return old, false
		}
		old = r.lease()
		x.unlink(r)
	}
	r := pack(l)
	x.byAddr[l.Addr] = r
	x.link(r)
	x.settle(l.Addr)
	return old, true
}

func (x *Index) drop(r *record) {
	x.unlink(r)
	delete(x.byAddr, r.addr)
	x.settle(r.addr)
}

// settle brings everything that is derived from an entry up to date after it changed.
func (x *Index) settle(a netip.Addr) {
	x.resolveOverlaps()
	x.refresh(a)
}

func (x *Index) link(r *record) {
	if id := r.containerID(); id != "" {
		k := xxhash.Sum64String(id)
		r.nextContainer, x.byContainer[k] = x.byContainer[k], r
	}
	if at := r.attachment(); at != "" {
		k := xxhash.Sum64String(at)
		r.nextAttachment, x.byAttachment[k] = x.byAttachment[k], r
	}
	if h := r.host.Value(); h.IsValid() && r.state != Available {
		if x.byHost[h] == nil {
			x.byHost[h] = map[*record]struct{}{}
		}
		x.byHost[h][r] = struct{}{}
	}
	x.count(r, +1)
}

func (x *Index) unlink(r *record) {
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
	x.count(r, -1)
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
