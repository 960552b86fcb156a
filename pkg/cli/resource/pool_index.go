package resource

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// IndexOf returns an index of pools, without addresses and namespaces.
func IndexOf(s *app.App, all []Pool) *index.Index {
	x := index.New()
	SetPools(x, all, s.Now())
	return x
}

// SetPools adds pools to an index, in their state at now.
func SetPools(x *index.Index, all []Pool, now time.Time) {
	for _, p := range all {
		x.Pools.SetPool(store.Pool(p.BCSNetPool))
		x.Pools.SetRebuilding(p.Name, Rebuilding(p, now))
	}
}

// SetNodes adds the nodes to an index if the hosts of one of the pools depend on them.
func SetNodes(ctx context.Context, s *app.App, x *index.Index, pools []Pool) {
	for _, n := range NodesFor(ctx, s, pools...) {
		x.Pools.SetNode(n.Name, n.Known())
	}
}

// SetNamespaces adds the namespaces to an index if one of the pools selects them by labels. If the user may not list
// them, it only warns: pods then get no address from the index, because it cannot tell which pools are theirs.
func SetNamespaces(ctx context.Context, s *app.App, x *index.Index, pools []Pool) error {
	if !slices.ContainsFunc(pools, func(p Pool) bool { return p.Spec.NamespaceSelector != nil }) {
		return nil
	}
	all, err := ListNamespaces(ctx, s)
	switch {
	case apierrors.IsForbidden(err):
		s.Say.Warn("pools choose namespaces by their labels, and you may not list these: %v", err)
		return nil
	case err != nil:
		return Explain(s, err)
	}
	for _, n := range all {
		x.Pools.SetNamespace(n.GetName(), n.GetLabels())
	}
	return nil
}

// FillHeld adds the nodes and every held address to an index of pools; for the pools named in resting also addresses in
// cooldown. An address that is free in the index is free for the controller.
func FillHeld(ctx context.Context, s *app.App, x *index.Index, resting []string) error {
	leases, err := s.Leases()
	if err != nil {
		return err
	}
	defer s.Say.WaitLater("reading the addresses that are held")()
	nodes, err := ListNodes(ctx, s)
	if err != nil {
		s.Say.Warn("nodes cannot be read, so an address that a node has itself counts as free: %v", err)
	}
	for _, n := range nodes {
		x.Pools.SetNode(n.Name, n.Known())
	}
	queries := []LeaseQuery{{Selectors: TakenOnly()}}
	for _, name := range resting {
		if p, ok := x.Pools.Get(name); ok && p.Cooldown > 0 {
			queries = append(queries, LeaseQuery{Pool: name, Status: lease.Available.String()})
		}
	}
	for _, q := range queries {
		if err := leases.Each(ctx, q.Selector(), func(l lease.Lease) error {
			x.Feed.Wrote(l)
			return nil
		}); err != nil {
			return Explain(s, err)
		}
	}
	return nil
}
