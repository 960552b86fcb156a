package memory

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Catalogue has the pools, and the lists in which requests look for them. A pool is in each list that its spec names,
// and the lists are in the order of preference. An address is in the segment of at most one pool.
type Catalogue struct {
	ByName map[string]*PoolState
	// Roots are all pools except blocks.
	Roots map[string]*PoolState
	// splits counts the pools that are split into blocks.
	splits int
	// Children are the pools that name a parent, as they were given, by the parent's name. The parent may be unknown:
	// objects come in any order.
	Children map[string]map[string]ipam.Pool
	// families are the groups of each parent that can have groups, by the parent's name.
	families map[string]*ipam.Groups
	// Making are the pools that this process is creating.
	Making makingPools
	// Rebuilding has, for each pool that is being rebuilt, the reason why it waits. Such a pool allocates nothing.
	Rebuilding map[string]string
	// Segments are in the order of their addresses, and do not overlap.
	Segments []segment
	// bound are the pools of a namespace.
	bound map[string][]*PoolState
	// Unbound are the pools of a host that are in the default chain, BoundHosts those that are not.
	Unbound, BoundHosts HostTable
	// Open are all pools of the default chain.
	Open []*PoolState
	// Networks are the pools of a network.
	Networks map[string][]*PoolState
	// selecting are the pools that have a host selector.
	selecting  map[*PoolState]struct{}
	Namespaces namespaceTable
	// Growing are the pools of the default chain that give blocks by themselves and are not being deleted.
	Growing []*PoolState
	// owning are the pools in which a namespace has blocks.
	owning map[string][]*PoolState
	// ordered are the blocks of a namespace that have a priority of their own.
	ordered map[string][]*PoolState
	// Plans counts the changes of pools.
	Plans uint64
	// rebuilds counts how often the addresses that a pool serves were computed.
	rebuilds uint64
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

// list enters a pool in the lists in which requests look for it: those of its namespaces, its hosts, its network, and
// the default chain.
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
	if p.Split != nil && p.AutoAssign && p.InDefaultChain() && !p.Terminating {
		x.Growing = inserted(x.Growing, p)
	}
	if p.Network != "" {
		enter(x.Networks, p.Network, p)
	}
	if p.HostSelector != nil {
		x.selecting[p] = struct{}{}
	}
}

// hostsOf returns the table that finds a pool by its hosts.
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

// inserted adds a pool to a list that is in the order of preference.
func inserted(list []*PoolState, p *PoolState) []*PoolState {
	at, _ := slices.BinarySearchFunc(list, p, Preference)
	return slices.Insert(list, at, p)
}

func removed(list []*PoolState, p *PoolState) []*PoolState {
	return slices.DeleteFunc(list, func(o *PoolState) bool { return o == p })
}

// Preference orders pools by priority, the highest first, then by name. It does not look at what is free, because
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

// Serving finds the pool that serves an address, and the address's number in its free set: the block if there is one,
// else the parent.
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
