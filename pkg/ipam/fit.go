package ipam

import (
	"iter"
	"slices"
)

// fitting returns the pools that a request may draw from, in the order of preference. It looks at no more
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
	return (w.Pool == "" || w.Pool == p.Name) && p.lists(w) && x.servesNamespace(p, w) &&
		(w.Network == "" || w.Network == p.Network)
}

// named returns the pool of a name, if there is one.
func (x *catalogue) named(name string) []*poolState {
	if p, ok := x.pools[name]; ok {
		return []*poolState{p}
	}
	return nil
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

// together returns the pools from which a request takes its addresses together: those of p's network that
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

// heldTogether returns the pools that may complete what the request holds; none when the pools of what it
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
