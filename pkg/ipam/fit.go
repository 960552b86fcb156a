package ipam

import (
	"cmp"
	"iter"
	"slices"
)

// fitting returns the pools that a request may draw from, in the order of preference. It looks at no more
// of them than its user does.
func (x *catalogue) fitting(w PickRequest) iter.Seq[*poolState] {
	candidates := x.chain(w)
	return func(yield func(*poolState) bool) {
		for q := range x.drawn(candidates, w.Namespace) {
			if x.fits(q, w) && !yield(q) {
				return
			}
		}
	}
}

// chain returns where a request looks for addresses, in this order: in what it names, or else in what its namespace has
// of its own, and only where that is nothing, in the default chain.
func (x *catalogue) chain(w PickRequest) iter.Seq[*poolState] {
	switch {
	case len(w.Pools) > 0:
		return slices.Values(x.named(w.Pools))
	case w.Network != "":
		return slices.Values(x.networks[w.Network])
	case x.hasOwn(w):
		return x.own(w)
	case w.Ahead:
		return slices.Values(x.open)
	default:
		return x.unbound.of(w.Host)
	}
}

func (x *catalogue) fits(p *poolState, w PickRequest) bool {
	return (len(w.Pools) == 0 || w.nameOf(p) >= 0) && p.lists(w) && x.servesNamespace(p, w) &&
		(w.Network == "" || w.Network == p.Network)
}

// named returns the pools of some names, in the order of these. If there is none of one of the names, it returns none:
// a mistyped name must not give an address of another pool.
func (x *catalogue) named(names []string) []*poolState {
	all := make([]*poolState, 0, len(names))
	for _, name := range names {
		p, ok := x.byName[name]
		if !ok {
			return nil
		}
		all = append(all, p)
	}
	return all
}

// nameOf returns which of the names that a request gives is that of a pool, or of the whole of which the pool is a
// block; -1 for none.
func (w PickRequest) nameOf(p *poolState) int {
	return slices.IndexFunc(w.Pools, func(name string) bool { return name == p.Name || name == p.CountedAs() })
}

// servesNamespace reports whether a pool is for the namespace of a request. A pool that is bound is for its namespaces,
// as a block is for its one, one that is left out of the default chain for whoever names it, and one of the default
// chain for namespaces that have nothing of their own; ahead of all pods, for those that draw from it on some host.
func (x *catalogue) servesNamespace(p *poolState, w PickRequest) bool {
	switch {
	case w.byHand():
		return true
	case p.Bound():
		return p.boundTo(w.Namespace)
	case p.split != nil && !p.NotDefault: // whoever has a block, or could be given one, has it of his own
		return len(x.bound[w.Namespace]) == 0
	case p.NotDefault:
		return w.names(p)
	default:
		return !x.hasOwn(w) || w.Ahead && slices.Contains(x.beside(w.Namespace), p)
	}
}

// together returns the pools from which a request takes its addresses together: those of p's network that
// fit, or p alone if it is part of none and fits.
func (x *catalogue) together(p *poolState, w PickRequest) []*poolState {
	if p.Network == "" {
		if x.fits(p, w) {
			return []*poolState{p}
		}
		return nil
	}
	all := x.networks[p.Network]
	fit := make([]*poolState, 0, len(all))
	for q := range x.drawn(slices.Values(all), w.Namespace) {
		if q.Network == p.Network && x.fits(q, w) {
			fit = append(fit, q)
		}
	}
	if len(w.Pools) > 1 {
		slices.SortStableFunc(fit, func(a, b *poolState) int { return cmp.Compare(w.nameOf(a), w.nameOf(b)) })
	}
	return fit
}

// heldTogether returns the pools that may complete what the request holds; none when the pools of what it
// holds are gone or fit no longer.
func (x *catalogue) heldTogether(w PickRequest) []*poolState {
	for _, l := range w.Have {
		if p, ok := x.byName[l.Pool]; ok {
			if fit := x.together(p, w); len(fit) > 0 {
				return fit
			}
		}
	}
	return nil
}
