package ipam

import (
	"maps"
	"slices"
)

// arrange returns what becomes of a pool that has come, gone or changed, and of all whose part depends on it: its
// parent with its groups, the parent that it had before, and its own groups. Blocks read their parent by themselves.
func (x *catalogue) arrange(s *poolState, was string) map[*poolState]Pool {
	next := map[*poolState]Pool{}
	if x.roots[s.given.Name] == s {
		next[s] = s.given
	}
	names := []string{s.given.Parent, was, s.given.Name}
	for i, name := range names {
		if name == "" || slices.Contains(names[:i], name) || name != s.given.Name && x.arrangeOne(s, name, next) {
			continue
		}
		parent := x.roots[name]
		var groups []Pool
		if name != s.given.Name && (parent == nil || parent.given.BlockSize > 0) { // the others stay as they are
			if name == s.given.Parent && x.roots[s.given.Name] == s {
				groups = []Pool{s.given}
			}
		} else {
			for _, c := range x.children[name] {
				if x.roots[c.Name] != nil {
					groups = append(groups, c)
				}
			}
		}
		var given *Pool
		if parent != nil {
			given = &parent.given
		}
		delete(x.families, name)
		if given != nil && given.BlockSize > 0 {
			for _, c := range groups {
				next[x.roots[c.Name]] = x.noBlock(c)
			}
			continue
		}
		rest, carved, family := carve(name, given, groups)
		for _, c := range carved {
			next[x.roots[c.Name]] = c
		}
		if given != nil && rest.Parent == "" {
			next[parent] = *rest
			x.families[name] = family
		}
	}
	return next
}

// arrangeOne does that with a child that shares no address with another child of a parent: its own part changes and
// that of the parent, and no other is looked at. It reports whether that was all.
func (x *catalogue) arrangeOne(s *poolState, name string, next map[*poolState]Pool) bool {
	parent, family := x.roots[name], x.families[name]
	if family == nil {
		return false
	}
	var child *Pool
	if x.roots[s.given.Name] == s && s.given.Parent == name {
		child = &s.given
	}
	fitted, changed, alone := family.replace(name, parent.given, s.given.Name, child)
	if !alone {
		return false
	}
	if child != nil {
		next[s] = fitted
	}
	if changed {
		next[parent] = family.rest.of(parent.given)
	}
	return true
}

// noBlock returns a child of a pool that is split into blocks, and that is none of these.
func (x *catalogue) noBlock(c Pool) Pool {
	if _, _, problem := x.blockOf(c); problem != "" {
		return c.misfit(problem)
	}
	c.dropAddresses() // a block, which adopt makes of it
	return c
}

// place gives pools the values that were worked out for them, and lists them anew where they are to be found elsewhere.
// It returns those that may serve other addresses.
func (x *state) place(next map[*poolState]Pool) (changed []*poolState) {
	for s, p := range next {
		p, blocks := p.WithNodes(maps.Values(x.nodes.byName)).divided() // the selector of a child may be its parent's
		same := s.listed && sameService(s.Pool, p)
		relist := !s.listed || !sameLists(s.Pool, p)
		if s.listed && relist {
			x.pools.unlist(s)
		}
		s.Pool, s.usable, s.rebuilding = p, p.Plan.Usable.Ranges(), x.pools.rebuilding[p.Name]
		x.divide(s, blocks)
		if relist {
			s.hosts = uncounted
			x.pools.list(s)
		}
		if !same {
			changed = append(changed, s)
		}
	}
	return changed
}

// serve works out what pools serve that have changed, together with those that shared addresses with them, or do now.
func (x *state) serve(changed []*poolState) {
	all := map[*poolState]struct{}{}
	for _, s := range changed {
		all[s] = struct{}{}
		x.findDraining(s.Name)
		for _, o := range x.findOverlaps(s) {
			all[o] = struct{}{}
		}
	}
	if len(all) > 0 {
		x.rebuild(slices.Collect(maps.Keys(all))...)
	}
}

// sameService reports whether two states of a pool serve the same addresses alike.
func sameService(a, b Pool) bool {
	sameWithheld := a.Withheld == b.Withheld || a.Withheld != nil && b.Withheld != nil && a.Withheld.Equal(b.Withheld)
	return a.Plan.Usable.Equal(b.Plan.Usable) && a.Plan.Subnet == b.Plan.Subnet && a.Created.Equal(b.Created) &&
		a.Terminating == b.Terminating && a.Cooldown == b.Cooldown && a.Valid() == b.Valid() &&
		a.BlockSize == b.BlockSize && a.Carving == b.Carving && sameWithheld
}

// sameLists reports whether requests find two states of a pool in the same places.
func sameLists(a, b Pool) bool {
	return maps.Equal(a.Hosts, b.Hosts) && maps.Equal(a.HostSubnets, b.HostSubnets) &&
		sameSelector(a.HostSelector, b.HostSelector) && slices.Equal(a.Selected, b.Selected) &&
		maps.Equal(a.Namespaces, b.Namespaces) && sameSelector(a.NamespaceSelector, b.NamespaceSelector) &&
		a.NotDefault == b.NotDefault && a.AutoAssign == b.AutoAssign && a.BlockSize == b.BlockSize &&
		a.Valid() == b.Valid() && a.Terminating == b.Terminating &&
		a.Network == b.Network && a.Priority == b.Priority
}

func sameSelector(a, b Selector) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.String() == b.String()
}

// Children names the pools that name one as their parent, in order, whether or not they serve: groups and blocks.
func (x *Pools) Children(parent string) []string {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return slices.Sorted(maps.Keys(x.core.state.pools.children[parent]))
}

// Relatives names the pools whose part depends on one: its parent, the other groups of that, and its own groups. Blocks
// are none: they take nothing from each other.
func (x *Pools) Relatives(name string) (names []string) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	groups := func(parent string) {
		if p := x.core.state.pools.roots[parent]; p != nil && p.split != nil || p == nil && parent != name {
			return
		}
		for c := range x.core.state.pools.children[parent] {
			if c != name {
				names = append(names, c)
			}
		}
	}
	if p := x.core.state.pools.roots[name]; p != nil && p.Parent != "" {
		groups(p.Parent)
		names = append(names, p.Parent)
	}
	groups(name)
	return names
}
