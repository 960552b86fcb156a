package ipam

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// catalogue has the pools, and where requests look for them. Every pool is in each list that its spec names, in the
// order of preference, and every address is in the segment of at most one pool.
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

// hostsOf returns where a pool is found by its hosts.
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

// inserted returns a list, which is in the order of preference, with a pool more.
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

// joinSegments puts the segments of changed pools in the place of their old ones, in address order.
func (x *catalogue) joinSegments(changed []*poolState) {
	kept := slices.DeleteFunc(x.segments, func(s segment) bool { return slices.Contains(changed, s.pool) })
	var fresh []segment
	for _, p := range changed {
		fresh = append(fresh, p.segments...)
	}
	byAddr := func(a, b segment) int { return a.From().Compare(b.From()) }
	slices.SortFunc(fresh, byAddr)
	joined := make([]segment, 0, len(kept)+len(fresh))
	for len(kept) > 0 && len(fresh) > 0 {
		from := &kept
		if byAddr(fresh[0], kept[0]) < 0 {
			from = &fresh
		}
		joined, *from = append(joined, (*from)[0]), (*from)[1:]
	}
	x.segments = append(append(joined, kept...), fresh...)
}

// serving finds the pool that serves an address, and the address's number in its free set.
func (x *catalogue) serving(a netip.Addr) (*poolState, uint64, bool) {
	at, exact := slices.BinarySearchFunc(x.segments, a, func(s segment, a netip.Addr) int { return s.From().Compare(a) })
	if !exact {
		at--
	}
	if at < 0 || x.segments[at].To().Less(a) {
		return nil, 0, false
	}
	s := x.segments[at]
	return s.pool, s.base + ipaddr.Distance(s.From(), a), true
}
