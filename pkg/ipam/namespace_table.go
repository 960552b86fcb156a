package ipam

import (
	"iter"
	"maps"
	"slices"
)

// namespaceTable has the labels of the namespaces that are known, and the pools that choose namespaces by labels. Which
// ones a pool chooses is worked out when the pool or a namespace changes: a request finds it in catalogue.bound.
type namespaceTable struct {
	labels   map[string]map[string]string
	choosing map[*poolState]struct{}
}

// newNamespaceTable returns a table without namespaces.
func newNamespaceTable() namespaceTable {
	return namespaceTable{labels: map[string]map[string]string{}, choosing: map[*poolState]struct{}{}}
}

// match finds the namespaces that the selector of a pool matches, if it has one.
func (t *namespaceTable) match(p *poolState) {
	if p.matched = nil; p.NamespaceSelector == nil {
		return
	}
	t.choosing[p], p.matched = struct{}{}, map[string]struct{}{}
	for ns, labels := range t.labels {
		if p.NamespaceSelector.Matches(labels) {
			p.matched[ns] = struct{}{}
		}
	}
}

// unmatch undoes match.
func (t *namespaceTable) unmatch(p *poolState) {
	delete(t.choosing, p)
	p.matched = nil
}

// undetermined reports whether pools might be bound to the namespace of a request by labels that are not known yet. A
// request of an owner may come from a namespace that Kubernetes does not have; nobody will ever know its labels.
func (x *catalogue) undetermined(w PickRequest) bool {
	if len(x.namespaces.choosing) == 0 || w.Namespace == "" || w.Owner != "" || x.hasCertainly(w) {
		return false
	}
	_, known := x.namespaces.labels[w.Namespace]
	return !known
}

// rematch brings up to date which pools are bound to a namespace whose labels have changed, and names the pools that
// are now or were before.
func (x *catalogue) rematch(ns string) (changed []string) {
	labels, known := x.namespaces.labels[ns]
	for p := range x.namespaces.choosing {
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

// namespaces returns the namespaces that a pool is bound to at present, each once.
func (p *poolState) namespaces() iter.Seq[string] {
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
func (p *poolState) boundTo(ns string) bool {
	_, named := p.Namespaces[ns]
	_, matched := p.matched[ns]
	return named || matched
}

// SetNamespace takes a namespace that exists, with its labels, and names the pools whose selectors match it now and did
// not before, or the other way round. The labels must not change afterwards. Leases stay as they are.
func (x *Pools) SetNamespace(name string, labels map[string]string) (changed []string) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	old, known := x.core.state.pools.namespaces.labels[name]
	if known && maps.Equal(old, labels) {
		return nil
	}
	x.core.state.pools.namespaces.labels[name] = labels
	if changed = x.core.state.pools.rematch(name); len(changed) > 0 {
		x.core.state.pools.plans++
	}
	return changed
}

// RemoveNamespace forgets a namespace, and names the pools whose selectors matched it.
func (x *Pools) RemoveNamespace(name string) (changed []string) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	delete(x.core.state.pools.namespaces.labels, name)
	if changed = x.core.state.pools.rematch(name); len(changed) > 0 {
		x.core.state.pools.plans++
	}
	return changed
}

// NamespacesOf counts the namespaces that a pool is bound to by name, and those that its selector matches at present
// beside them.
func (x *Pools) NamespacesOf(pool string) (named, matched int) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	p := x.core.state.pools.byName[pool]
	if p == nil {
		return 0, 0
	}
	for range p.namespaces() {
		matched++
	}
	return len(p.Namespaces), matched - len(p.Namespaces)
}
