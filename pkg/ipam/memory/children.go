package memory

import (
	"maps"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// arrange returns what becomes of a pool that has come, gone or changed, and of all whose part depends on it: its
// parent with its groups, the parent that it had before, and its own groups. Blocks read their parent by themselves.
func (x *Catalogue) arrange(s *PoolState, was string) map[*PoolState]ipam.Pool {
	next := map[*PoolState]ipam.Pool{}
	if x.Roots[s.Given.Name] == s {
		next[s] = s.Given
	}
	names := []string{s.Given.Parent, was, s.Given.Name}
	for i, name := range names {
		if name == "" || slices.Contains(names[:i], name) || name != s.Given.Name && x.arrangeOne(s, name, next) {
			continue
		}
		parent := x.Roots[name]
		var groups []ipam.Pool
		if name != s.Given.Name && (parent == nil || parent.Given.BlockSize > 0) { // the others stay as they are
			if name == s.Given.Parent && x.Roots[s.Given.Name] == s {
				groups = []ipam.Pool{s.Given}
			}
		} else {
			for _, c := range x.Children[name] {
				if x.Roots[c.Name] != nil {
					groups = append(groups, c)
				}
			}
		}
		var given *ipam.Pool
		if parent != nil {
			given = &parent.Given
		}
		delete(x.families, name)
		if given != nil && given.BlockSize > 0 {
			for _, c := range groups {
				next[x.Roots[c.Name]] = x.noBlock(c)
			}
			continue
		}
		rest, carved, family := ipam.Carve(name, given, groups)
		for _, c := range carved {
			next[x.Roots[c.Name]] = c
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
func (x *Catalogue) arrangeOne(s *PoolState, name string, next map[*PoolState]ipam.Pool) bool {
	parent, family := x.Roots[name], x.families[name]
	if family == nil {
		return false
	}
	var child *ipam.Pool
	if x.Roots[s.Given.Name] == s && s.Given.Parent == name {
		child = &s.Given
	}
	fitted, changed, alone := family.Replace(name, parent.Given, s.Given.Name, child)
	if !alone {
		return false
	}
	if child != nil {
		next[s] = fitted
	}
	if changed {
		next[parent] = family.Rest.Of(parent.Given)
	}
	return true
}

// noBlock returns a child of a pool that is split into blocks, and that is none of these.
func (x *Catalogue) noBlock(c ipam.Pool) ipam.Pool {
	if _, _, problem := x.blockOf(c); problem != "" {
		return c.Misfit(problem)
	}
	c.DropAddresses() // a block, which adopt makes of it
	return c
}

// place gives pools the values that were worked out for them, and lists them anew where they are to be found elsewhere.
// It returns those that may serve other addresses.
func (x *State) place(next map[*PoolState]ipam.Pool) (changed []*PoolState) {
	for s, p := range next {
		p, blocks := p.WithNodes(x.Nodes.All()).Divided() // the selector of a child may be its parent's
		same := s.listed && sameService(s.Pool, p)
		relist := !s.listed || !sameLists(s.Pool, p)
		if s.listed && relist {
			x.Pools.unlist(s)
		}
		s.Pool, s.UsableRanges, s.Rebuilding = p, p.Plan.Usable.Ranges(), x.Pools.Rebuilding[p.Name]
		x.divide(s, blocks)
		if relist {
			s.HostCount = Uncounted
			x.Pools.list(s)
		}
		if !same {
			changed = append(changed, s)
		}
	}
	return changed
}

// serve computes which addresses pools serve. It does so for changed pools, and for all pools that share addresses with
// them or shared some before.
func (x *State) serve(changed []*PoolState) {
	all := map[*PoolState]struct{}{}
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
func sameService(a, b ipam.Pool) bool {
	sameWithheld := a.Withheld == b.Withheld || a.Withheld != nil && b.Withheld != nil && a.Withheld.Equal(b.Withheld)
	return a.Plan.Usable.Equal(b.Plan.Usable) && a.Plan.Subnet == b.Plan.Subnet && a.Created.Equal(b.Created) &&
		a.Terminating == b.Terminating && a.Cooldown == b.Cooldown && a.Valid() == b.Valid() &&
		a.BlockSize == b.BlockSize && a.Carving == b.Carving && sameWithheld
}

// sameLists reports whether requests find two states of a pool in the same places.
func sameLists(a, b ipam.Pool) bool {
	return maps.Equal(a.Hosts, b.Hosts) && maps.Equal(a.HostSubnets, b.HostSubnets) &&
		ipam.SameSelector(a.HostSelector, b.HostSelector) && slices.Equal(a.Selected, b.Selected) &&
		maps.Equal(a.Namespaces, b.Namespaces) && ipam.SameSelector(a.NamespaceSelector, b.NamespaceSelector) &&
		a.NotDefault == b.NotDefault && a.AutoAssign == b.AutoAssign && a.BlockSize == b.BlockSize &&
		a.Valid() == b.Valid() && a.Terminating == b.Terminating &&
		a.Network == b.Network && a.Priority == b.Priority
}
