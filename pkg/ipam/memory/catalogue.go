package memory

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Catalogue has the pools, and where requests look for them. Every pool is in each list that its spec names, in the
// order of preference, and every address is in the segment of at most one pool.
type Catalogue struct {
	ByName map[string]*PoolState
	// Roots are all but the blocks: what looks at every pool looks at these. splits counts those that are split into
	// blocks. children are the pools that name a parent, as they were given, by the parent's name: objects come in any
	// order.
	Roots    map[string]*PoolState
	splits   int
	Children map[string]map[string]ipam.Pool
	// families are what the groups of a parent have of it, by its name; of parents alone that can have some.
	families map[string]*ipam.Groups
	// Making are the pools that this process is making.
	Making makingPools
	// Rebuilding maps a pool that is being rebuilt to what it waits for; such a pool hands out nothing.
	Rebuilding map[string]string
	Segments   []segment
	// bound are the pools of a namespace, unbound those of a host that are in the default chain, open all that are in
	// it, networks those of a network.
	bound    map[string][]*PoolState
	Unbound  HostTable
	Open     []*PoolState
	Networks map[string][]*PoolState
	// BoundHosts has the pools of hosts that are not in the default chain.
	BoundHosts HostTable
	// selecting are the pools that have a host selector.
	selecting  map[*PoolState]struct{}
	Namespaces namespaceTable
	// Growing are the pools of the default chain that give blocks by themselves, owning those in which a namespace has
	// blocks.
	Growing []*PoolState
	owning  map[string][]*PoolState
	// ordered are the blocks of a namespace that it draws from in a given order.
	ordered map[string][]*PoolState
	// Plans counts the changes of pools, rebuilds how often it was worked out what one serves.
	Plans, rebuilds uint64
}

// newCatalogue returns a catalogue without pools.
func newCatalogue() Catalogue {
	return Catalogue{
		ByName: map[string]*PoolState{}, Roots: map[string]*PoolState{}, Children: map[string]map[string]ipam.Pool{},
		families: map[string]*ipam.Groups{}, Making: makingPools{}, Rebuilding: map[string]string{},
		bound: map[string][]*PoolState{}, Unbound: newHostTable(), BoundHosts: newHostTable(),
		Networks:  map[string][]*PoolState{},
		selecting: map[*PoolState]struct{}{}, Namespaces: newNamespaceTable(), owning: map[string][]*PoolState{},
		ordered: map[string][]*PoolState{},
	}
}

// list enters a pool where requests look for it: under its namespaces, or under its hosts when it
// is in the default chain, and under its network. All lists are in the order of preference.
func (x *Catalogue) list(p *PoolState) {
	p.listed = true
	x.Namespaces.match(p)
	for ns := range p.NamespacesNow() {
		enter(x.bound, ns, p)
	}
	x.hostsOf(p).enter(p)
	if p.InDefaultChain() {
		x.Open = inserted(x.Open, p)
	}
	if p.Split != nil && p.AutoAssign && p.InDefaultChain() {
		x.Growing = inserted(x.Growing, p)
	}
	if p.Network != "" {
		enter(x.Networks, p.Network, p)
	}
	if p.HostSelector != nil {
		x.selecting[p] = struct{}{}
	}
}

// hostsOf returns where a pool is found by its hosts.
func (x *Catalogue) hostsOf(p *PoolState) *HostTable {
	if p.InDefaultChain() {
		return &x.Unbound
	}
	return &x.BoundHosts
}

// unlist undoes list.
func (x *Catalogue) unlist(p *PoolState) {
	p.listed = false
	for ns := range p.NamespacesNow() {
		leave(x.bound, ns, p)
	}
	x.Namespaces.unmatch(p)
	x.hostsOf(p).leave(p)
	if p.InDefaultChain() {
		x.Open = removed(x.Open, p)
	}
	x.Growing = removed(x.Growing, p)
	if p.Network != "" {
		leave(x.Networks, p.Network, p)
	}
	delete(x.selecting, p)
}

func enter[K comparable](lists map[K][]*PoolState, k K, p *PoolState) {
	lists[k] = inserted(lists[k], p)
}

func leave[K comparable](lists map[K][]*PoolState, k K, p *PoolState) {
	if lists[k] = removed(lists[k], p); len(lists[k]) == 0 {
		delete(lists, k)
	}
}

// inserted returns a list, which is in the order of preference, with a pool more.
func inserted(list []*PoolState, p *PoolState) []*PoolState {
	at, _ := slices.BinarySearchFunc(list, p, Preference)
	return slices.Insert(list, at, p)
}

func removed(list []*PoolState, p *PoolState) []*PoolState {
	return slices.DeleteFunc(list, func(o *PoolState) bool { return o == p })
}

// Preference orders pools: higher priority first, then by name; never by what is free, because
// replicas must agree.
func Preference(a, b *PoolState) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
}

// joinSegments puts the segments of changed pools in the place of their old ones, in address order.
func (x *Catalogue) joinSegments(changed []*PoolState) {
	kept := slices.DeleteFunc(x.Segments, func(s segment) bool { return slices.Contains(changed, s.Pool) })
	var fresh []segment
	for _, p := range changed {
		fresh = append(fresh, p.Segments...)
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
	x.Segments = append(append(joined, kept...), fresh...)
}

// Serving finds the pool that serves an address, and the address's number in its free set: a block that exists, the
// parent for what is in none.
func (x *Catalogue) Serving(a netip.Addr) (*PoolState, uint64, bool) {
	p, number, ok := x.SegmentOf(a)
	if ok && p.Split != nil {
		n, _ := p.Split.NumberOf(a)
		if b, exists := p.Split.Existing(n); exists {
			return b, number, true
		}
	}
	return p, number, ok
}

// SegmentOf finds the pool whose free set an address is in, and its number there.
func (x *Catalogue) SegmentOf(a netip.Addr) (*PoolState, uint64, bool) {
	at, exact := slices.BinarySearchFunc(x.Segments, a, func(s segment,
		a netip.Addr) int {
		return s.From().Compare(a)
	})
	if !exact {
		at--
	}
	if at < 0 || x.Segments[at].To().Less(a) {
		return nil, 0, false
	}
	s := x.Segments[at]
	return s.Pool, s.Base + ipaddr.Distance(s.From(), a), true
}

// Around returns the pools whose subnet has an address, in the order of preference.
func (x *Catalogue) Around(a netip.Addr) (all []*PoolState) {
	for _, p := range x.Roots {
		if p.Valid() && p.Plan.Subnet.Contains(a) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, Preference)
	return all
}
