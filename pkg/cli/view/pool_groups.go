package view

import (
	"cmp"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// groupsOf returns the groups of a pool in the order of their addresses. Groups without addresses come last.
func groupsOf(all map[string]ipam.Pool, name string) (groups []ipam.Pool) {
	if all[name].BlockSize > 0 {
		return nil
	}
	for _, p := range all {
		if p.Parent == name {
			groups = append(groups, p)
		}
	}
	slices.SortFunc(groups, func(a, b ipam.Pool) int {
		x, y := a.Usable().Ranges(), b.Usable().Ranges()
		if len(x) == 0 || len(y) == 0 {
			return cmp.Or(cmp.Compare(len(y), len(x)), cmp.Compare(a.Name, b.Name))
		}
		return x[0].From().Compare(y[0].From())
	})
	return groups
}

// groupText says which addresses a group takes from its parent.
func groupText(g ipam.Pool) string {
	switch {
	case !g.Valid():
		return g.Name + ": nothing, " + g.Problem
	case len(g.Usable().Ranges()) == 0:
		return g.Name + ": no addresses"
	default:
		return g.Name + ": " + resource.Spell(g.Usable()) + " (" + resource.Addresses(g.Usable()) + ")"
	}
}
