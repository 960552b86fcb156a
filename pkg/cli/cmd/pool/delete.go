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
	names   []string
	yes     bool
	wait    bool
	timeout time.Duration
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
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&v.wait, "wait", true, "wait until the pools are gone")
	cmd.Flags().DurationVar(&v.timeout, "timeout", 5*time.Minute, "how long to wait; 0 is for ever")
	s.DryRun.AddTo(cmd)
	return cmd
}

func (v *poolDelete) Complete(args []string) error {
	v.names = app.SortedOnce(args)
	return nil
}

func (v *poolDelete) Validate() error {
	if v.timeout < 0 {
		return app.Usagef("--timeout %s is negative", v.timeout)
	}
	return nil
}

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
	waits := map[string]int{}
	for _, p := range all {
		waits[p.Name] = v.radius(ctx, p, every)
		v.warnChildren(p, every)
	}
	rest := slices.DeleteFunc(slices.Clone(every), func(p resource.Pool) bool {
		return slices.Contains(v.names,
			p.Name)
	})
	lossesOf(every, rest, resource.NodesFor(ctx, v.App, every...)).warn(v.App)
	if err := v.Confirm(ctx, v.yes, fmt.Sprintf("Delete %s?", app.Those("pool", v.names))); err != nil {
		return err
	}
	return v.deleteAll(ctx, api, all, waits)
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

func (v *poolDelete) deleteAll(
	ctx context.Context, api *resource.Pools, all []resource.Pool, waits map[string]int,
) error {
	var failed app.Several
	var left []resource.Pool
	for _, p := range all {
		err := v.deleteOne(ctx, api, p)
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("pool %s was not deleted: %w", p.Name, err))
		case v.DryRun != app.DryRunNone && waits[p.Name] > 0:
			v.Say.Done("pool %s would stop allocating, and would be deleted once %s %s released", p.Name,
				humanize.Plural(waits[p.Name], "address"), humanize.OneOr(waits[p.Name], "is", "are"))
		case v.DryRun != app.DryRunNone:
			v.Say.Done("pool %s deleted", p.Name)
		case !v.wait:
			v.Say.Done("deletion of pool %s requested", p.Name)
		default:
			left = append(left, p)
		}
	}
	limit := follow.Remaining(v.App, v.timeout)
	for _, p := range left {
		if err := v.waitGone(ctx, api, p, limit()); err != nil {
			failed = append(failed, err)
		}
	}
	return failed.OrNil()
}

// deleteOne deletes the pool that was shown, not a new one of the same name.
func (v *poolDelete) deleteOne(ctx context.Context, api *resource.Pools, p resource.Pool) error {
	if v.DryRun == app.DryRunClient {
		return nil
	}
	return resource.Delete(ctx, v.App, api.API, p.Name, p.UID)
}
