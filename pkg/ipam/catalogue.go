package ipam

import (
	"cmp"
	"slices"

	"go4.org/netipx"
)

// catalogue has the pools, and where requests look for them. Every pool is in each list that its spec names, in the order
// of preference, and every address is in the segment of at most one pool.
type catalogue struct {
	pools map[string]*poolState
	// rebuilding maps a pool that is being rebuilt to what it waits for; such a pool hands out nothing.
	rebuilding map[string]string
	segments   []segment
	// bound are the pools of a namespace, unbound those of a host that are bound to none, open all that are bound to none,
	// networks those of a network.
	bound    map[string][]*poolState
	unbound  hostTable
	open     []*poolState
	networks map[string][]*poolState
	// boundHosts has the pools of hosts that are bound to namespaces.
	boundHosts hostTable
	// plans counts the changes of pools, rebuilds how often it was worked out what one serves.
	plans, rebuilds uint64
}

func newCatalogue() catalogue {
	return catalogue{
		pools: map[string]*poolState{}, rebuilding: map[string]string{}, bound: map[string][]*poolState{},
		unbound: newHostTable(), boundHosts: newHostTable(), networks: map[string][]*poolState{},
	}
}

// poolState is a pool with what it serves and what of that is free.
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

// list enters a pool where requests look for it: under its namespaces, or under its hosts when it
// has none, and under its network. All lists are in the order of preference.
func (x *catalogue) list(p *poolState) {
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
func (x *catalogue) hostsOf(p *poolState) *hostTable {
	if len(p.Namespaces) == 0 {
		return &x.unbound
	}
	return &x.boundHosts
}

func (x *catalogue) unlist(p *poolState) {
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
