package ipam

import (
	"iter"
	"slices"
)

// fitting are the pools that a request may draw from, in the order of preference. It looks at no more
// of them than its user does.
func (x *Index) fitting(w PickRequest) iter.Seq[*poolState] {
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

func (x *Index) fits(p *poolState, w PickRequest) bool {
	return (w.Pool == "" || w.Pool == p.Name) && p.lists(w) && x.servesNamespace(p, w) && (w.Network == "" || w.Network == p.Network)
}

// named is the pool of a name, if there is one.
func (x *Index) named(name string) []*poolState {
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
func (x *Index) servesNamespace(p *poolState, w PickRequest) bool {
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
func (x *Index) together(p *poolState, w PickRequest) []*poolState {
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
func (x *Index) heldTogether(w PickRequest) []*poolState {
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
func (x *Index) unserved(w PickRequest) *Refusal {
	switch {
	case w.Ahead && w.Pool == "":
		return Refuse(ReasonNamespaceNotServed, "no pool that a host may draw from serves %s", w.namespace()).
			WithHint("name a pool in spec.pool of the claim; see: bcsnetctl pool list -o wide")
	case !w.Host.IsValid() && !w.byHand() && !w.Ahead:
		return Refuse(ReasonMissingField, "a request that names no host names an owner and a pool")
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
	switch {
	case len(listed) == 0:
		return Refuse(ReasonHostNotInPool, "host %s does not exist in pools", w.Host).
			WithHint("add it with: bcsnetctl pool add-host POOL %s", w.Host)
	case !serving:
		return Refuse(ReasonNamespaceNotServed, "none of the pools of host %s serves namespace %s: %s",
			w.Host, w.Namespace, poolNames(listed)).
			WithHint("see spec.namespaces in: bcsnetctl pool describe %s", listed[0].Name)
	default:
		return Refuse(ReasonNetworkNotFound, "no pool that host %s may draw from for namespace %s is part of network %s",
			w.Host, w.Namespace, w.Network).
			WithHint("set spec.network of a pool, or ask for another network")
	}
}

// unservedBy says why the one pool that a request names does not fit.
func (x *Index) unservedBy(name string, w PickRequest) *Refusal {
	p, ok := x.pools[name]
	switch {
	case !ok:
		return Refuse(ReasonNotFound, "there is no pool %s", name).WithHint("see: bcsnetctl pool list")
	case !p.lists(w):
		refusal := Refuse(ReasonHostNotInPool, "host %s may not draw from pool %s", w.Host, name)
		if len(p.HostSubnets) > 0 {
			refusal.Message += ", nor is it in its host subnets " + p.HostSubnets.String()
		}
		return refusal.WithHint("add the host with: bcsnetctl pool add-host %s %s", name, w.Host)
	case !x.servesNamespace(p, w):
		return Refuse(ReasonNamespaceNotServed, "pool %s does not serve %s", name, w.namespace()).
			WithHint("see spec.namespaces in: bcsnetctl pool describe %s", name)
	default:
		return Refuse(ReasonNetworkNotFound, "pool %s is not part of network %s", name, w.Network).
			WithHint("ask for another pool or network")
	}
}

// namespace is the one that the request is for, in words.
func (w PickRequest) namespace() string {
	if w.Namespace == "" {
		return "all namespaces"
	}
	return "namespace " + w.Namespace
}
