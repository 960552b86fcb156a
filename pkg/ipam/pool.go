package ipam

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"go4.org/netipx"
)

// Pool is a pool as the index knows it. It is not changed once it was given to SetPool.
type Pool struct {
	Name    string
	Created time.Time
	// Generation is that of the spec which the rest was read from.
	Generation int64
	Plan       Plan
	// Problem says why the pool's spec cannot be used; such a pool serves nothing.
	Problem    string
	Hosts      map[netip.Addr]struct{}
	Namespaces map[string]struct{}
	Network    string
	Priority   int32
	// Cordoned and Terminating pools hand out nothing.
	Cordoned, Terminating bool
	Link                  Link
}

// Link is what a pool tells the CNI plugin beside the address.
type Link struct {
	VLAN, MTU int
	Routes    []Route
	DNS       *DNS
}

// Route for the pod; GW is invalid where the gateway of the pool is meant.
type Route struct {
	Dst netip.Prefix
	GW  netip.Addr
}

// DNS is the resolver configuration of the CNI specification.
type DNS struct {
	Nameservers []string
	Domain      string
	Search      []string
	Options     []string
}

// Params are what an address of the pool takes from it.
func (p Pool) Params() Params {
	return Params{Pool: p.Name, Bits: p.Plan.Subnet.Bits(), Gateway: p.Plan.Gateway}
}

// Valid says whether the pool's spec can be used.
func (p Pool) Valid() bool { return p.Problem == "" }

// Serves says whether the pool hands out addresses at all.
func (p Pool) Serves() bool { return p.Valid() && !p.Cordoned && !p.Terminating }

// group names the pools that a request takes its addresses from together: those of one network, else
// the pool alone.
func (p Pool) group() string {
	if p.Network != "" {
		return "network/" + p.Network
	}
	return "pool/" + p.Name
}

func (p Pool) is4() bool { return p.Plan.Subnet.Addr().Is4() }

type poolState struct {
	Pool
	segments []segment
	set      *freeSet
	overlaps map[string]*overlap
}

// segment is a run of addresses that one pool serves; base is the number of its first address in the
// pool's free set.
type segment struct {
	netipx.IPRange
	base uint64
	pool *poolState
}

// SetPool adds a pool or takes its changes.
func (x *Index) SetPool(p Pool) {
	if p.Plan.Usable == nil {
		p.Plan.Usable, p.Plan.Ranged = &netipx.IPSet{}, &netipx.IPSet{}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	old, exists := x.pools[p.Name]
	if !exists {
		old = &poolState{set: newFreeSet(0), overlaps: map[string]*overlap{}}
		old.Plan.Usable = &netipx.IPSet{}
		x.pools[p.Name] = old
	} else {
		x.unlist(old)
	}
	same := exists && old.Plan.Usable.Equal(p.Plan.Usable) && old.Plan.Subnet == p.Plan.Subnet &&
		old.Created.Equal(p.Created) && old.Terminating == p.Terminating
	old.Pool = p
	x.list(old)
	if !same {
		x.findOverlaps(old)
		x.rebuild(old)
	}
}

// RemovePool forgets a pool. Its addresses stay in the index while their objects do.
func (x *Index) RemovePool(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p, ok := x.pools[name]
	if !ok {
		return
	}
	x.unlist(p)
	p.Plan.Usable = &netipx.IPSet{}
	delete(x.pools, name)
	x.findOverlaps(p)
	x.joinSegments()
}

// list enters a pool under its hosts, in the order of preference, and its namespaces.
func (x *Index) list(p *poolState) {
	for h := range p.Hosts {
		at, _ := slices.BinarySearchFunc(x.hosts[h], p, preference)
		x.hosts[h] = slices.Insert(x.hosts[h], at, p)
	}
	for ns := range p.Namespaces {
		x.bound[ns]++
	}
}

func (x *Index) unlist(p *poolState) {
	for h := range p.Hosts {
		if x.hosts[h] = slices.DeleteFunc(x.hosts[h], func(o *poolState) bool { return o == p }); len(x.hosts[h]) == 0 {
			delete(x.hosts, h)
		}
	}
	for ns := range p.Namespaces {
		if x.bound[ns]--; x.bound[ns] == 0 {
			delete(x.bound, ns)
		}
	}
}

// preference orders pools: higher priority first, then by name; never by what is free, because
// replicas must agree.
func preference(a, b *poolState) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
}

// rebuild computes which addresses a pool serves and which of them are free.
func (x *Index) rebuild(p *poolState) {
	served := p.Plan.Usable
	for _, o := range p.overlaps {
		if o.winner != p {
			served, _ = subtract(served, o.shared) // sets of one family: cannot fail
		}
	}
	p.segments = p.segments[:0:0]
	var n uint64
	for _, r := range served.Ranges() {
		p.segments = append(p.segments, segment{IPRange: r, base: n, pool: p})
		n += Size(r)
	}
	p.set = newFreeSet(n)
	x.joinSegments()
	if n <= uint64(len(x.byAddr)) {
		for i := range n {
			x.refresh(p.address(i))
		}
		return
	}
	for a := range x.byAddr {
		x.refresh(a)
	}
	for a := range x.holds {
		x.refresh(a)
	}
	for a := range x.nodeIP {
		x.refresh(a)
	}
}

func (x *Index) joinSegments() {
	x.segments = x.segments[:0]
	for _, p := range x.pools {
		x.segments = append(x.segments, p.segments...)
	}
	slices.SortFunc(x.segments, func(a, b segment) int { return a.From().Compare(b.From()) })
}

// serving finds the pool that serves an address, and the address's number in its free set.
func (x *Index) serving(a netip.Addr) (*poolState, uint64, bool) {
	at, exact := slices.BinarySearchFunc(x.segments, a, func(s segment, a netip.Addr) int { return s.From().Compare(a) })
	if !exact {
		at--
	}
	if at < 0 || x.segments[at].To().Less(a) {
		return nil, 0, false
	}
	s := x.segments[at]
	return s.pool, s.base + distance(s.From(), a), true
}

// address is the i-th address that the pool serves.
func (p *poolState) address(i uint64) netip.Addr {
	at, exact := slices.BinarySearchFunc(p.segments, i, func(s segment, i uint64) int { return cmp.Compare(s.base, i) })
	if !exact {
		at--
	}
	return advance(p.segments[at].From(), i-p.segments[at].base)
}

// refresh brings the free set of the pool that serves an address up to date.
func (x *Index) refresh(a netip.Addr) {
	if p, i, ok := x.serving(a); ok && i < p.set.n {
		p.set.set(i, x.occupied(a))
	}
}

// occupied says whether an address cannot be handed out at present.
func (x *Index) occupied(a netip.Addr) bool {
	if r, ok := x.byAddr[a]; ok && (r.state != Available || r.flags&flagDeleting != 0) {
		return true
	}
	if _, held := x.holds[a]; held {
		return true
	}
	_, node := x.nodeIP[a]
	return node
}

// SetNode takes the addresses that a node itself has; none for a node that is gone. They are never
// handed out.
func (x *Index) SetNode(name string, addrs []netip.Addr) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.nodes[name]
	if slices.Equal(old, addrs) {
		return
	}
	for _, a := range old {
		if x.nodeIP[a] == name {
			delete(x.nodeIP, a)
		}
	}
	for _, a := range addrs {
		x.nodeIP[a] = name
	}
	if x.nodes[name] = addrs; len(addrs) == 0 {
		delete(x.nodes, name)
	}
	for _, a := range slices.Concat(old, addrs) {
		x.refresh(a)
	}
}

// distance is b-a, for addresses of one family that are less than 2^64 apart.
func distance(a, b netip.Addr) uint64 {
	x, y := a.As16(), b.As16()
	return binary.BigEndian.Uint64(y[8:]) - binary.BigEndian.Uint64(x[8:])
}

// advance is a+n.
func advance(a netip.Addr, n uint64) netip.Addr {
	if a.Is4() {
		b := a.As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(n))
		return netip.AddrFrom4(b)
	}
	b := a.As16()
	low := binary.BigEndian.Uint64(b[8:])
	if low+n < low {
		binary.BigEndian.PutUint64(b[:8], binary.BigEndian.Uint64(b[:8])+1)
	}
	binary.BigEndian.PutUint64(b[8:], low+n)
	return netip.AddrFrom16(b)
}
