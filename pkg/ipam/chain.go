package ipam

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/explain"
)

// Standing is how a pool stands to the requests of a namespace that name neither a pool nor a network.
type Standing string

// Standings of pools that are tried.
const (
	// BoundByName and BoundByLabels: the pool is bound to the namespace.
	BoundByName   Standing = "BoundByName"
	BoundByLabels Standing = "BoundByLabels"
	// InDefaultChain: the namespace has nothing of its own, and the pool is for such namespaces.
	InDefaultChain Standing = "InDefaultChain"
	// BesideItsOwn: the pool is in the default chain, and the namespace draws from it on hosts for which it has nothing
	// of its own.
	BesideItsOwn Standing = "BesideItsOwn"
	// OwnBlock: the pool is a block of the namespace.
	OwnBlock Standing = "OwnBlock"
	// SplitIntoBlocks: the pool hands out nothing itself; the namespace has blocks of it, or could get one by itself.
	SplitIntoBlocks Standing = "SplitIntoBlocks"
	// GivesNoBlock: the pool gives no block by itself, and the namespace has none of it. Its requests end there where
	// it has nothing of its own.
	GivesNoBlock Standing = "GivesNoBlock"
)

// Standings of pools that are passed over.
const (
	// BoundElsewhere: the pool is bound to other namespaces, or its selector matches none.
	BoundElsewhere Standing = "BoundElsewhere"
	// OnlyByName: the pool is bound to no namespace and left out of the default chain.
	OnlyByName Standing = "OnlyByName"
	// BehindItsOwn: the pool is in the default chain, and the namespace has something of its own.
	BehindItsOwn Standing = "BehindItsOwn"
	// NotOnHost: no host may draw from the pool, or not the one in question.
	NotOnHost Standing = "NotOnHost"
)

// Place is where a pool stands in the chain of a namespace.
type Place struct {
	Pool     string
	Standing Standing
	// Tried means that requests of the namespace try the pool.
	Tried bool
	// Stop is why the pool hands out nothing at present, tried or not.
	Stop explain.Stop
}

// Chain returns the places of all pools for a namespace: first those that its requests try, in their order, then those
// that are passed over, without the blocks of other namespaces. Without a valid host it is that of any host: a pool is
// tried if it is tried on one of its hosts.
func (x *Pools) Chain(namespace string, host netip.Addr) (all []Place) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	w := PickRequest{Namespace: namespace, Host: host, Ahead: !host.IsValid()}
	tried := map[*poolState]bool{}
	for p := range x.core.state.pools.fitting(w) {
		tried[p] = true
		all = append(all, Place{p.Name, x.core.state.pools.standing(p, w), true, p.stop()})
	}
	if !host.IsValid() {
		for _, p := range x.core.state.pools.beside(namespace) {
			if !tried[p] {
				tried[p] = true
				all = append(all, Place{p.Name, BesideItsOwn, true, p.stop()})
			}
		}
	}
	for _, p := range slices.SortedFunc(maps.Values(x.core.state.pools.byName), preference) {
		if !tried[p] && !p.Block {
			all = append(all, Place{p.Name, x.core.state.pools.standing(p, w), false, p.stop()})
		}
	}
	return all
}

// ServesNamespace reports whether a pool is for requests of a namespace that name neither a pool nor a network, on
// hosts for which the namespace could be given no block.
func (x *Pools) ServesNamespace(pool, namespace string) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	p := x.core.state.pools.byName[pool]
	return p != nil && x.core.state.pools.servesNamespace(p, PickRequest{Namespace: namespace})
}

// standing returns how a pool stands to the namespace of a request.
func (x *catalogue) standing(p *poolState, w PickRequest) Standing {
	_, named := p.Namespaces[w.Namespace]
	switch {
	case p.Block:
		return OwnBlock
	case p.Bound() && !p.boundTo(w.Namespace):
		return BoundElsewhere
	case !p.Bound() && p.NotDefault:
		return OnlyByName
	case !p.lists(w):
		return NotOnHost
	case named:
		return BoundByName
	case p.Bound():
		return BoundByLabels
	case p.split != nil && x.servesNamespace(p, w) && (p.AutoAssign || len(p.split.Owns(w.Namespace)) > 0):
		return SplitIntoBlocks
	case p.split != nil && !p.AutoAssign && len(p.split.Owns(w.Namespace)) == 0:
		return GivesNoBlock
	case x.hasOwn(w):
		return BehindItsOwn
	default:
		return InDefaultChain
	}
}
