package ipam

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Pool is a pool as the index knows it. It is not changed once it was given to SetPool.
type Pool struct {
	Name    string
	Created time.Time
	// Generation is that of the spec which the rest was read from.
	Generation int64
	Plan       Plan
	// Problem says why the pool's spec cannot be used; such a pool serves nothing.
	Problem string
	// Hosts and the hosts in HostSubnets may draw from the pool.
	Hosts       map[netip.Addr]struct{}
	HostSubnets Networks
	Namespaces  map[string]struct{}
	Network     string
	Priority    int32
	// MaxPerHost is how many addresses of the pool one host may have at a time; 0 for no bound.
	MaxPerHost int
	// MaxPerNamespace is how many addresses of the pool may count for one namespace, where Quotas say nothing of it; 0 for
	// no bound.
	MaxPerNamespace int
	Quotas          map[string]int
	// Cooldown is how long an address that was given up rests before the pool hands it out again.
	Cooldown time.Duration
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

// Family returns that of all addresses of the pool.
func (p Pool) Family() ipaddr.Family { return ipaddr.FamilyOf(p.Plan.Subnet.Addr()) }

type poolState struct {
	Pool
	usable    []netipx.IPRange // of the plan
	segments  []segment
	set       *freeSet
	cooldowns cooldowns
	overlaps  map[string]*overlap
	// hosts is how many hosts may draw, uncounted where that has to be found out.
	hosts int
	// revision is another number whenever what the pool serves was worked out anew.
	revision uint64
	// rebuilding says what the pool waits for before it hands out again; empty when it does not wait.
	rebuilding string
}

// Serves says whether the pool hands out addresses at present.
func (p *poolState) Serves() bool { return p.Pool.Serves() && p.rebuilding == "" }

// SetRebuilding keeps a pool, whether or not there is one of that name yet, from handing out addresses while it
// is not known which of them are in use. waiting says what has to happen first; empty ends the wait.
func (x *Index) SetRebuilding(name, waiting string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.rebuilding[name] = waiting; waiting == "" {
		delete(x.rebuilding, name)
	}
	if p, ok := x.pools[name]; ok && p.rebuilding != waiting {
		p.rebuilding = waiting
		x.plans++
	}
}

// Rebuilding is what a pool waits for; empty when it does not.
func (x *Index) Rebuilding(name string) string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.rebuilding[name]
}

// SetPool adds a pool or takes its changes.
func (x *Index) SetPool(p Pool) {
	if p.Plan.Usable == nil || !p.Valid() {
		none := &netipx.IPSet{}
		p.Plan.Usable, p.Plan.Single, p.Plan.Ranged = none, none, none
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	s, exists := x.pools[p.Name]
	if !exists {
		s = &poolState{set: newFreeSet(0), cooldowns: newCooldowns(0), overlaps: map[string]*overlap{}}
		x.pools[p.Name] = s
	} else {
		x.unlist(s)
	}
	same := exists && s.Plan.Usable.Equal(p.Plan.Usable) && s.Plan.Subnet == p.Plan.Subnet &&
		s.Created.Equal(p.Created) && s.Terminating == p.Terminating && s.Cooldown == p.Cooldown && s.Valid() == p.Valid()
	s.Pool, s.usable, s.rebuilding, s.hosts = p, p.Plan.Usable.Ranges(), x.rebuilding[p.Name], uncounted
	x.list(s)
	x.plans++
	if !same {
		x.findDraining(p.Name)
		x.rebuild(append(x.findOverlaps(s), s)...)
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
	p.Plan.Usable, p.usable = &netipx.IPSet{}, nil
	delete(x.pools, name)
	x.plans++
	x.findDraining(name)
	x.rebuild(append(x.findOverlaps(p), p)...)
}

// list enters a pool where requests look for it: under its namespaces, or under its hosts when it
// has none, and under its network. All lists are in the order of preference.
func (x *Index) list(p *poolState) {
	for ns := range p.Namespaces {
		enter(x.bound, ns, p)
	}
	x.hostsOf(p).enter(p)
	if len(p.Namespaces) == 0 {
		x.open = inserted(x.open, p)
	}
	if p.Network != "" {
		enter(x.networks, p.Network, p)
	}
}

// hostsOf is where a pool is found by its hosts.
func (x *Index) hostsOf(p *poolState) *hostTable {
	if len(p.Namespaces) == 0 {
		return &x.unbound
	}
	return &x.boundHosts
}

func (x *Index) unlist(p *poolState) {
	for ns := range p.Namespaces {
		leave(x.bound, ns, p)
	}
	x.hostsOf(p).leave(p)
	if len(p.Namespaces) == 0 {
		x.open = removed(x.open, p)
	}
	if p.Network != "" {
		leave(x.networks, p.Network, p)
	}
}

func enter[K comparable](lists map[K][]*poolState, k K, p *poolState) {
	lists[k] = inserted(lists[k], p)
}

func leave[K comparable](lists map[K][]*poolState, k K, p *poolState) {
	if lists[k] = removed(lists[k], p); len(lists[k]) == 0 {
		delete(lists, k)
	}
}

// inserted is a list, which is in the order of preference, with a pool more.
func inserted(list []*poolState, p *poolState) []*poolState {
	at, _ := slices.BinarySearchFunc(list, p, preference)
	return slices.Insert(list, at, p)
}

func removed(list []*poolState, p *poolState) []*poolState {
	return slices.DeleteFunc(list, func(o *poolState) bool { return o == p })
}

// preference orders pools: higher priority first, then by name; never by what is free, because
// replicas must agree.
func preference(a, b *poolState) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
}
