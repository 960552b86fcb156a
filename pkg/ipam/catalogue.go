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
	byName map[string]*poolState
	// roots are all but the blocks: what looks at every pool looks at these. splits counts those that are split into
	// blocks. children are the pools that name a parent, as they were given, by the parent's name: objects come in any
	// order.
	roots    map[string]*poolState
	splits   int
	children map[string]map[string]Pool
	// families are what the groups of a parent have of it, by its name; of parents alone that can have some.
	families map[string]*family
	// making are the pools that this process is making.
	making makingPools
	// rebuilding maps a pool that is being rebuilt to what it waits for; such a pool hands out nothing.
	rebuilding map[string]string
	segments   []segment
	// bound are the pools of a namespace, unbound those of a host that are in the default chain, open all that are in
	// it, networks those of a network.
	bound    map[string][]*poolState
	unbound  hostTable
	open     []*poolState
	networks map[string][]*poolState
	// boundHosts has the pools of hosts that are not in the default chain.
	boundHosts hostTable
	// selecting are the pools that have a host selector.
	selecting  map[*poolState]struct{}
	namespaces namespaceTable
	// growing are the pools of the default chain that give blocks by themselves and are not being deleted, owning those in
	// which a namespace has blocks.
	growing []*poolState
	owning  map[string][]*poolState
	// ordered are the blocks of a namespace that it draws from in a given order.
	ordered map[string][]*poolState
	// plans counts the changes of pools, rebuilds how often it was worked out what one serves.
	plans, rebuilds uint64
}

func newCatalogue() catalogue {
	return catalogue{
		byName: map[string]*poolState{}, roots: map[string]*poolState{}, children: map[string]map[string]Pool{},
		families: map[string]*family{}, making: makingPools{}, rebuilding: map[string]string{},
		bound: map[string][]*poolState{}, unbound: newHostTable(), boundHosts: newHostTable(),
		networks:  map[string][]*poolState{},
		selecting: map[*poolState]struct{}{}, namespaces: newNamespaceTable(), owning: map[string][]*poolState{},
		ordered: map[string][]*poolState{},
	}
}

// list enters a pool where requests look for it: under its namespaces, or under its hosts when it
// is in the default chain, and under its network. All lists are in the order of preference.
func (x *catalogue) list(p *poolState) {
	p.listed = true
	x.namespaces.match(p)
	for ns := range p.namespaces() {
		enter(x.bound, ns, p)
	}
	x.hostsOf(p).enter(p)
	if p.InDefaultChain() {
		x.open = inserted(x.open, p)
	}
	if p.split != nil && p.AutoAssign && p.InDefaultChain() && !p.Terminating {
		x.growing = inserted(x.growing, p)
	}
	if p.Network != "" {
		enter(x.networks, p.Network, p)
	}
	if p.HostSelector != nil {
		x.selecting[p] = struct{}{}
	}
}

// hostsOf returns where a pool is found by its hosts.
func (x *catalogue) hostsOf(p *poolState) *hostTable {
	if p.InDefaultChain() {
		return &x.unbound
	}
	return &x.boundHosts
}

func (x *catalogue) unlist(p *poolState) {
	p.listed = false
	for ns := range p.namespaces() {
		leave(x.bound, ns, p)
	}
	x.namespaces.unmatch(p)
	x.hostsOf(p).leave(p)
	if p.InDefaultChain() {
		x.open = removed(x.open, p)
	}
	x.growing = removed(x.growing, p)
	if p.Network != "" {
		leave(x.networks, p.Network, p)
	}
	delete(x.selecting, p)
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

// serving finds the pool that serves an address, and the address's number in its free set: a block that exists, the
// parent for what is in none.
func (x *catalogue) serving(a netip.Addr) (*poolState, uint64, bool) {
	p, number, ok := x.segmentOf(a)
	if ok && p.split != nil {
		if n, _ := p.split.number(a); p.split.blocks[n] != nil {
			return p.split.blocks[n], number, true
		}
	}
	return p, number, ok
}

// segmentOf finds the pool whose free set an address is in, and its number there.
func (x *catalogue) segmentOf(a netip.Addr) (*poolState, uint64, bool) {
	at, exact := slices.BinarySearchFunc(x.segments, a, func(s segment,
		a netip.Addr) int {
		return s.From().Compare(a)
	})
	if !exact {
		at--
	}
	if at < 0 || x.segments[at].To().Less(a) {
		return nil, 0, false
	}
	s := x.segments[at]
	return s.pool, s.base + ipaddr.Distance(s.From(), a), true
}
