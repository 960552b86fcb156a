package resource

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// ReadNodes adds the nodes to an index.
func ReadNodes(ctx context.Context, s *app.App, x *index.Index) error {
	nodes, err := ListNodes(ctx, s)
	for _, n := range nodes {
		x.Pools.SetNode(n.Name, n.Known())
	}
	return err
}

// ReadAll returns an index of the nodes, all addresses, also free ones, and the pools. No watch feeds it: it is for a
// plan, which each of its writes compares with what is stored.
func ReadAll(ctx context.Context, s *app.App, leases *store.Client) (*index.Index, error) {
	x := index.New()
	if err := leases.Each(ctx, "", func(l lease.Lease) error {
		x.Feed.Wrote(l)
		return nil
	}); err != nil {
		return nil, Explain(s, err)
	}
	if err := ReadNodes(ctx, s, x); err != nil {
		return nil, err
	}
	return x, ReadPools(ctx, s, x, leases.Now())
}

// FillHeld adds the nodes and every held address to an index of pools; for the pools named in resting also addresses in
// cooldown. An address that is free in the index is free for the controller.
func FillHeld(ctx context.Context, s *app.App, x *index.Index, resting []string) error {
	leases, err := s.Leases()
	if err != nil {
		return err
	}
	defer s.Say.WaitLater("reading the addresses that are held")()
	if err := ReadNodes(ctx, s, x); err != nil {
		s.Say.Warn("nodes cannot be read, so an address that a node has itself counts as free: %v", err)
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
