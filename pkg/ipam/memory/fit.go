package memory

import (
	"cmp"
	"iter"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Served reports whether any pool fits.
func (x *Catalogue) Served(w ipam.PickRequest) bool {
	for range x.Fitting(w) {
		return true
	}
	return false
}

// Offers reports whether any of some pools has addresses of a family, taken or not.
func Offers(pools []*PoolState, f ipaddr.Family) bool {
	return slices.ContainsFunc(pools, func(p *PoolState) bool { return p.Family() == f && p.Valid() })
}

// Fitting returns the pools that a request may draw from, in the order of preference. It looks at no more
// of them than its user does.
func (x *Catalogue) Fitting(w ipam.PickRequest) iter.Seq[*PoolState] {
	candidates := x.chain(w)
	return func(yield func(*PoolState) bool) {
		for q := range x.drawn(candidates, w.Namespace) {
			if x.Fits(q, w) && !yield(q) {
				return
			}
		}
	}
}

// chain returns where a request looks for addresses, in this order: in what it names, or else in what its namespace has
// of its own, and only where that is nothing, in the default chain.
func (x *Catalogue) chain(w ipam.PickRequest) iter.Seq[*PoolState] {
	switch {
	case len(w.Pools) > 0:
		return slices.Values(x.named(w.Pools))
	case w.Network != "":
		return slices.Values(x.Networks[w.Network])
	case x.HasOwn(w):
		return x.Own(w)
	case w.Ahead:
		return slices.Values(x.Open)
	default:
		return x.Unbound.Of(w.Host)
	}
}

// Fits reports whether a request may draw from a pool.
func (x *Catalogue) Fits(p *PoolState, w ipam.PickRequest) bool {
	return (len(w.Pools) == 0 || w.NameOf(p.Pool) >= 0) && p.Lists(w) && x.ServesNamespace(p, w) &&
		(w.Network == "" || w.Network == p.Network)
}

// named returns the pools of some names, in the order of these. If there is none of one of the names, it returns none:
// a mistyped name must not give an address of another pool.
func (x *Catalogue) named(names []string) []*PoolState {
	all := make([]*PoolState, 0, len(names))
	for _, name := range names {
		p, ok := x.ByName[name]
		if !ok {
			return nil
		}
		all = append(all, p)
	}
	return all
}

// ServesNamespace reports whether a pool is for the namespace of a request. A pool that is bound is for its namespaces,
// as a block is for its one. A pool that is left out of the default chain is for requests that name it. A pool of the
// default chain is for namespaces that have nothing of their own, and for a request ahead of all pods if pods of the
// namespace draw from the pool on some host.
func (x *Catalogue) ServesNamespace(p *PoolState, w ipam.PickRequest) bool {
	switch {
	case w.ByHand():
		return true
	case p.Bound():
		return p.boundTo(w.Namespace)
	case p.Split != nil && !p.NotDefault: // whoever has a block, or could be given one, has it of his own
		return len(x.bound[w.Namespace]) == 0
	case p.NotDefault:
		return w.Names(p.Pool)
	default:
		return !x.HasOwn(w) || w.Ahead && slices.Contains(x.Beside(w.Namespace), p)
	}
}

// Together returns the pools from which a request takes its addresses together: those of p's network that
// fit, or p alone if it is part of none and fits.
func (x *Catalogue) Together(p *PoolState, w ipam.PickRequest) []*PoolState {
	if p.Network == "" {
		if x.Fits(p, w) {
			return []*PoolState{p}
		}
		return nil
	}
	all := x.Networks[p.Network]
	fit := make([]*PoolState, 0, len(all))
	for q := range x.drawn(slices.Values(all), w.Namespace) {
		if q.Network == p.Network && x.Fits(q, w) {
			fit = append(fit, q)
		}
	}
	if len(w.Pools) > 1 {
		slices.SortStableFunc(fit, func(a, b *PoolState) int { return cmp.Compare(w.NameOf(a.Pool), w.NameOf(b.Pool)) })
	}
	return fit
}

// HeldTogether returns the pools that may complete what the request holds; none when the pools of what it
// holds are gone or fit no longer.
func (x *Catalogue) HeldTogether(w ipam.PickRequest) []*PoolState {
	for _, l := range w.Have {
		if p, ok := x.ByName[l.Pool]; ok {
			if fit := x.Together(p, w); len(fit) > 0 {
				return fit
			}
		}
	}
	return nil
}
