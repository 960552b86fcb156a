package pool

import (
	"context"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// warnChildren names the groups and blocks whose deletion the pool's deletion waits for, unless they are being deleted,
// too.
func (v *poolDelete) warnChildren(p resource.Pool, all []resource.Pool) {
	var children []string
	for _, o := range all {
		if o.Spec.Parent == p.Name && !slices.Contains(v.names, o.Name) {
			children = append(children, o.Name)
		}
	}
	if n := len(children); n > 0 {
		v.Say.Warn("pool %s waits for the %s that %s carved from it: %s", p.Name, humanize.OneOr(n, "pool", "pools"),
			humanize.OneOr(n, "is", "are"), humanize.List(children))
	}
}

// takenOf lists the addresses of a pool and its blocks that are not free and that match takes.
func takenOf(
	ctx context.Context, s *app.App, all []resource.Pool, name string, match func(lease.Lease) bool,
) (resource.InTheWay, error) {
	names := resource.LeasePools(all, []string{name}, false)
	query := resource.LeaseQuery{Pool: name, Selectors: resource.TakenOnly()}
	if len(names) > 1 {
		query.Pool = "" // one list for the pool and all its blocks
	}
	taken, err := resource.HeldLeases(ctx, s, query, func(l lease.Lease) bool {
		return (l.Pool == name || slices.Contains(names, l.Pool)) && match(l)
	})
	return resource.SortOut(taken), err
}
