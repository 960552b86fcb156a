package pool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type poolDelete struct {
	*app.App
	deletion follow.Deletion
	names    []string
}

func newDelete(s *app.App) *cobra.Command {
	v := &poolDelete{App: s}
	cmd := &cobra.Command{
		Use: "delete POOL...", Aliases: []string{"rm"}, Args: app.Takes(1, 0), RunE: app.Runs(v),
		Short: "Delete pools",
		Long: `Delete pools, after a question. A pool stops allocating at once. It is deleted
when the last of its addresses in use is released and claims have returned the
addresses that they keep of it; the command waits for that. Interrupting it does
not bring the pool back.`,
		Example: `  bcsnetctl pool delete blue
  bcsnetctl pool delete blue green --yes --wait=false`,
		ValidArgsFunction: resource.CompletePools(s),
	}
	v.deletion.AddTo(s, cmd, "pools")
	return cmd
}

func (v *poolDelete) Complete(args []string) error {
	v.names = app.SortedOnce(args)
	return nil
}

func (v *poolDelete) Validate() error { return v.deletion.Validate() }

func (v *poolDelete) Run(ctx context.Context) error {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	all, err := api.Named(ctx, v.names)
	if err != nil {
		return err // nothing was deleted: one wrong name stops the command
	}
	every, err := api.List(ctx)
	if err != nil {
		return err
	}
	doomed := app.Map(all, func(p resource.Pool) follow.Doomed {
		waits := v.radius(ctx, p, every)
		v.warnChildren(p, every)
		return follow.Doomed{
			Noun: "pool", Name: p.Name, Stops: "stop allocating", Waits: waits,
			Delete: func(ctx context.Context) error { return resource.Delete(ctx, v.App, api.API, p.Name, p.UID) },
			UntilGone: func(ctx context.Context, limit time.Duration) (string, error) {
				return follow.UntilPoolGone(ctx, api, p, limit)
			},
		}
	})
	rest := slices.DeleteFunc(slices.Clone(every),
		func(p resource.Pool) bool { return slices.Contains(v.names, p.Name) })
	lossesOf(every, rest, resource.NodesFor(ctx, v.App, every...)).warn(v.App)
	return v.deletion.Run(ctx, v.App, doomed)
}

// radius announces the effects of deleting a pool. It returns the number of addresses, including those of blocks, for
// which the deletion waits.
func (v *poolDelete) radius(ctx context.Context, p resource.Pool, every []resource.Pool) (waits int) {
	total := "no addresses"
	if n := p.Status.Capacity; n > 0 {
		total = humanize.Plural(n, "address")
	} else if set := resource.SetOfEntries(p.Spec.AvailableIPs); !resource.Counted(p.BCSNetPool) {
		total = resource.Addresses(set)
	}
	way, err := takenOf(ctx, v.App, every, p.Name, func(lease.Lease) bool { return true })
	use := "none in use"
	switch {
	case err != nil:
		use = "it is unknown how many are in use: " + err.Error()
	case len(way.InUse) > 0:
		use = fmt.Sprintf("%d in use: %s", len(way.InUse), resource.PerHost(way.InUse))
	}
	if len(way.Kept) > 0 {
		use += ", kept by claims until released: " + way.Keepers()
	}
	if n := len(way.SetAside); n > 0 {
		use += fmt.Sprintf("; %d reserved, which %s deleted with the pool", n, humanize.OneOr(n, "is", "are"))
	}
	if p.DeletionTimestamp != nil {
		use += "; it is being deleted already"
	}
	v.Say.Start("pool %s (%s): %s, %s", p.Name, resource.CidrOf(p.BCSNetPool), total, use)
	if len(way.InUse) > 0 {
		v.Say.Note("  in use by %s", way.Holders())
	}
	if source := resource.SourceOf(p); source != "" {
		v.Say.Warn("pool %s is kept from ConfigMap %s: while its entry is there, the controller creates it again",
			p.Name, source)
	}
	return len(way.InUse) + len(way.Kept)
}

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
