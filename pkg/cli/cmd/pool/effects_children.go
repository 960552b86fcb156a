package pool

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// addChildren adds to kept the outdated leases of the pool's groups and blocks, which inherit settings.
func (e *effects) addChildren(ctx context.Context, s *app.App, pool string, fit *resource.Fit) error {
	if len(e.changed) == 0 {
		return nil
	}
	counts, changed := map[string]*lease.Outdated{}, map[string][]string{}
	for _, child := range fit.Children(pool) {
		was, is := fit.Settings(child)
		if names := was.Differ(is); len(names) > 0 {
			counts[child], changed[child] = lease.NewOutdated(is), names
		}
	}
	if len(counts) == 0 {
		return nil
	}
	leases, err := s.Leases()
	if err != nil {
		return err
	}
	query := resource.LeaseQuery{Status: lease.Active.String()}
	if err := leases.Each(ctx, query.Selector(), func(l lease.Lease) error {
		if of := counts[l.Pool]; of != nil {
			of.Add(l)
		}
		return nil
	}); err != nil {
		return resource.Explain(s, err)
	}
	for child, of := range counts {
		e.kept.Unknown += of.Unknown
		for _, name := range changed[child] {
			e.kept.By[name] += of.By[name]
		}
	}
	return nil
}
