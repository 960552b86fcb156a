package index

import (
	"net/netip"
	"slices"
	"sort"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// Scope is the network that the addresses of an interface come from, before annotations of its pod are read. What an
// annotation names may be of another network: then it is about another interface of the pod.
type Scope struct {
	// Network is the network that the request names; empty for none.
	Network string
	// Namespace of the pod.
	Namespace string
	// Several means that the pod has further interfaces.
	Several bool
}

// SetElsewhere reports whether addresses are only of other networks: each range has addresses of a pool of another
// network, and none of them is of the scope's. A range without an address of any pool may be mistyped, so that the set
// is not elsewhere. If the request names no network, all pools are of its network, but for those of a named network
// from which its namespace draws only by name; and these as well if the pod has no other interface. named are the pools
// that the interface draws from by name.
func (x *Pools) SetElsewhere(s Scope, set *netipx.IPSet, named []string) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	for _, r := range set.Ranges() {
		at := sort.Search(len(x.core.state.Pools.Segments),
			func(i int) bool { return !x.core.state.Pools.Segments[i].To().Less(r.From()) })
		if at == len(x.core.state.Pools.Segments) || !x.core.state.Pools.Segments[at].Overlaps(r) {
			return false
		}
		for ; at < len(x.core.state.Pools.Segments) && x.core.state.Pools.Segments[at].Overlaps(r); at++ {
			if p := x.core.state.Pools.Segments[at].Pool; x.inScope(p, s) || slices.Contains(named, p.Name) {
				return false
			}
		}
	}
	return len(set.Ranges()) > 0
}

func (x *Pools) inScope(p *memory.PoolState, s Scope) bool {
	if s.Network != "" {
		return p.Network == s.Network
	}
	return !s.Several || p.Network == "" || x.core.state.Pools.ServesNamespace(p,
		ipam.PickRequest{Namespace: s.Namespace})
}

// PoolsInScope returns those of some pools that are of the scope's network, and those that do not exist: a mistyped
// name is refused later. If the request names no network, all are.
func (x *Pools) PoolsInScope(s Scope, names []string) []string {
	if s.Network == "" {
		return names
	}
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		p := x.core.state.Pools.ByName[name]
		return p != nil && p.Network != s.Network
	})
}

// FamiliesElsewhere reports whether the scope's network lacks a family that is asked for, and another network has all
// of them.
func (x *Pools) FamiliesElsewhere(s Scope, f ipam.Families) bool {
	wanted := f.Needed()
	if s.Network == "" || len(wanted) == 0 {
		return false
	}
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	lacks := func(pools []*memory.PoolState) bool {
		return slices.ContainsFunc(wanted, func(f ipaddr.Family) bool { return !memory.Offers(pools, f) })
	}
	if pools := x.core.state.Pools.Networks[s.Network]; len(pools) == 0 || !lacks(pools) {
		return false
	}
	for name, pools := range x.core.state.Pools.Networks {
		if name != s.Network && !lacks(pools) {
			return true
		}
	}
	return false
}

// GatewayElsewhere reports whether a gateway is in the subnet of a pool of another network, and in none of the scope's.
func (x *Pools) GatewayElsewhere(s Scope, gateway netip.Addr) bool {
	if s.Network == "" {
		return false
	}
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	has := func(p *memory.PoolState) bool { return p.Valid() && p.Plan.Subnet.Contains(gateway) }
	if slices.ContainsFunc(x.core.state.Pools.Networks[s.Network], has) {
		return false
	}
	for _, p := range x.core.state.Pools.Roots {
		if p.Network != s.Network && has(p) {
			return true
		}
	}
	return false
}

// PoolsMeet reports whether any of the named pools exists and has an address of the set.
func (x *Pools) PoolsMeet(names []string, set *netipx.IPSet) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return slices.ContainsFunc(names, func(name string) bool {
		return x.core.state.Pools.ByName[name] != nil && x.core.state.Pools.ByName[name].Among(set)
	})
}

// PoolsOffer reports whether some pools have the families that are asked for. Pools that do not exist have all.
func (x *Pools) PoolsOffer(names []string, f ipam.Families) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	var pools []*memory.PoolState
	for _, name := range names {
		p, ok := x.core.state.Pools.ByName[name]
		if !ok {
			return true
		}
		pools = append(pools, p)
	}
	return !slices.ContainsFunc(f.Needed(), func(f ipaddr.Family) bool { return !memory.Offers(pools, f) })
}

// NetworkOf returns the network of the pool of a lease; empty for none.
func (x *Pools) NetworkOf(l lease.Lease) string {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	if p := x.core.state.Pools.ByName[l.Pool]; p != nil {
		return p.Network
	}
	return ""
}

// HasNetwork reports whether a pool is of a network.
func (x *Pools) HasNetwork(name string) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return name != "" && len(x.core.state.Pools.Networks[name]) > 0
}
