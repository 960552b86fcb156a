package ipam

import (
	"iter"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/explain"
)

// fitting are the pools that a request may draw from, in the order of preference. It looks at no more
// of them than its user does.
func (x *catalogue) fitting(w PickRequest) iter.Seq[*poolState] {
	candidates := x.unbound.of(w.Host)
	if w.Ahead {
		candidates = slices.Values(x.open)
	}
	switch {
	case w.Pool != "":
		candidates = slices.Values(x.named(w.Pool))
	case w.Network != "":
		candidates = slices.Values(x.networks[w.Network])
	case len(x.bound[w.Namespace]) > 0:
		candidates = slices.Values(x.bound[w.Namespace])
	}
	return func(yield func(*poolState) bool) {
		for p := range candidates {
			if x.fits(p, w) && !yield(p) {
				return
			}
		}
	}
}

func (x *catalogue) fits(p *poolState, w PickRequest) bool {
	return (w.Pool == "" || w.Pool == p.Name) && p.lists(w) && x.servesNamespace(p, w) && (w.Network == "" || w.Network == p.Network)
}

// named is the pool of a name, if there is one.
func (x *catalogue) named(name string) []*poolState {
	if p, ok := x.pools[name]; ok {
		return []*poolState{p}
	}
	return nil
}

// lists says whether the requester's host may draw from the pool. Ahead of all pods any host may be theirs, where the
// pool has one or was named.
func (p *poolState) lists(w PickRequest) bool {
	if w.Ahead {
		return w.Pool != "" || len(w.Sets) > 0 || !p.NoHosts()
	}
	return p.Draws(w.Host) || w.byHand()
}

// servesNamespace: a namespace with pools of its own draws from these alone.
func (x *catalogue) servesNamespace(p *poolState, w PickRequest) bool {
	if w.byHand() {
		return true
	}
	if len(x.bound[w.Namespace]) > 0 {
		_, ok := p.Namespaces[w.Namespace]
		return ok
	}
	return len(p.Namespaces) == 0
}

// together are the pools from which a request takes its addresses together: those of p's network that
// fit, or p alone if it is part of none and fits.
func (x *catalogue) together(p *poolState, w PickRequest) []*poolState {
	all := []*poolState{p}
	if p.Network != "" {
		all = x.networks[p.Network]
	}
	fit := make([]*poolState, 0, len(all))
	for _, p := range all {
		if x.fits(p, w) {
			fit = append(fit, p)
		}
	}
	return fit
}

// heldTogether are the pools that may complete what the request holds; none when the pools of what it
// holds are gone or fit no longer.
func (x *catalogue) heldTogether(w PickRequest) []*poolState {
	for _, l := range w.Have {
		if p, ok := x.pools[l.Pool]; ok {
			if fit := x.together(p, w); len(fit) > 0 {
				return fit
			}
		}
	}
	return nil
}

// unserved says why no pool fits a request.
func (x *picker) unserved(w PickRequest) *Refusal {
	switch {
	case w.Ahead && w.Pool == "":
		return refuse(ReasonNamespaceNotServed, explain.Facts{Kind: explain.NoPoolForClaim, Namespace: w.Namespace})
	case !w.Host.IsValid() && !w.byHand() && !w.Ahead:
		return refuse(ReasonMissingField, explain.Facts{Kind: explain.NoHostNamed})
	case w.Pool != "":
		return x.unservedBy(w.Pool, w)
	}
	var listed []*poolState
	serving := false
	for _, p := range x.pools {
		if p.lists(w) {
			listed = append(listed, p)
			serving = serving || x.servesNamespace(p, w)
		}
	}
	slices.SortFunc(listed, preference)
	facts := explain.Facts{Host: w.Host, Namespace: w.Namespace, Network: w.Network, Pools: poolNames(listed)}
	switch {
	case len(listed) == 0:
		facts.Kind = explain.HostInNoPool
		return refuse(ReasonHostNotInPool, facts)
	case !serving:
		facts.Kind, facts.Pool = explain.HostNotForNamespace, listed[0].Name
		return refuse(ReasonNamespaceNotServed, facts)
	default:
		facts.Kind = explain.HostNotOfNetwork
		return refuse(ReasonNetworkNotFound, facts)
	}
}

// unservedBy says why the one pool that a request names does not fit.
func (x *picker) unservedBy(name string, w PickRequest) *Refusal {
	p, ok := x.pools[name]
	facts := explain.Facts{Pool: name, Host: w.Host, Namespace: w.Namespace, Network: w.Network}
	switch {
	case !ok:
		facts.Kind = explain.NoSuchPool
		return refuse(ReasonNotFound, facts)
	case !p.lists(w):
		facts.Kind, facts.HostSubnets = explain.PoolNotForHost, p.HostSubnets.String()
		return refuse(ReasonHostNotInPool, facts)
	case !x.servesNamespace(p, w):
		facts.Kind = explain.PoolNotForNamespace
		return refuse(ReasonNamespaceNotServed, facts)
	default:
		facts.Kind = explain.PoolNotOfNetwork
		return refuse(ReasonNetworkNotFound, facts)
	}
}
