package memory

import (
	"iter"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// namespaceTable has the labels of the known namespaces, and the pools that select namespaces by labels. The namespaces
// of such a pool are computed when the pool or a namespace changes. Requests find the result in Catalogue.bound.
type namespaceTable struct {
	Labels   map[string]map[string]string
	choosing map[*PoolState]struct{}
}

// newNamespaceTable returns a table without namespaces.
func newNamespaceTable() namespaceTable {
	return namespaceTable{Labels: map[string]map[string]string{}, choosing: map[*PoolState]struct{}{}}
}

// match finds the namespaces that the selector of a pool matches, if it has one.
func (t *namespaceTable) match(p *PoolState) {
	if p.matched = nil; p.NamespaceSelector == nil {
		return
	}
	t.choosing[p], p.matched = struct{}{}, map[string]struct{}{}
	for ns, labels := range t.Labels {
		if p.NamespaceSelector.Matches(labels) {
			p.matched[ns] = struct{}{}
		}
	}
}

// unmatch undoes match.
func (t *namespaceTable) unmatch(p *PoolState) {
	delete(t.choosing, p)
	p.matched = nil
}

// Undetermined reports whether pools might be bound to the namespace of a request by labels that are not known yet. A
// request of an owner may come from a namespace that Kubernetes does not have; nobody will ever know its labels.
func (x *Catalogue) Undetermined(w ipam.PickRequest) bool {
	if len(x.Namespaces.choosing) == 0 || w.Namespace == "" || w.Owner != "" || x.hasCertainly(w) {
		return false
	}
	_, known := x.Namespaces.Labels[w.Namespace]
	return !known
}

// Rematch updates which pools are bound to a namespace after its labels have changed, and names the pools whose binding
// changed.
func (x *Catalogue) Rematch(ns string) (changed []string) {
	labels, known := x.Namespaces.Labels[ns]
	for p := range x.Namespaces.choosing {
		_, was := p.matched[ns]
		is := known && p.NamespaceSelector.Matches(labels)
		if was == is {
			continue
		}
		if _, named := p.Namespaces[ns]; !named {
			if is {
				enter(x.bound, ns, p)
			} else {
				leave(x.bound, ns, p)
			}
		}
		if is {
			p.matched[ns] = struct{}{}
		} else {
			delete(p.matched, ns)
		}
		changed = append(changed, p.Name)
	}
	slices.Sort(changed)
	return changed
}

// NamespacesNow returns the namespaces that a pool is bound to at present, each once.
func (p *PoolState) NamespacesNow() iter.Seq[string] {
	return func(yield func(string) bool) {
		for ns := range p.Namespaces {
			if !yield(ns) {
				return
			}
		}
		for ns := range p.matched {
			if _, named := p.Namespaces[ns]; !named && !yield(ns) {
				return
			}
		}
	}
}

// boundTo reports whether a pool is bound to a namespace at present.
func (p *PoolState) boundTo(ns string) bool {
	_, named := p.Namespaces[ns]
	_, matched := p.matched[ns]
	return named || matched
}
