package rebuild

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/recovery"
)

// verb runs rebuild, which creates lost leases again from the reports of their pods.
type verb struct {
	*app.App
	output printer.Output
	names  []string
	yes    bool
}

// New returns the command rebuild.
func New(s *app.App) *cobra.Command {
	v := &verb{App: s}
	cmd := &cobra.Command{
		Use: "rebuild", GroupID: "other", Args: app.Takes(0, 0), RunE: app.Runs(v),
		Short: "Create lost leases again from the pods that have the addresses",
		Long: `Create leases again that were lost while their pods run, for example by an etcd
restore: for every address of a pool that a running pod, an IPAddress of
Cluster API or the status of a Service reports and nobody holds. It shows them
first, then asks; look with --dry-run=client. An address that its pod gave up,
or that an operator took from it, is not brought back.

It names addresses that somebody else holds, does not change these conflicts,
and exits with 3. It also names pods that have not reported an address yet: run
it again when they have. A controller does the same when it starts, and keeps
others from the addresses meanwhile; this command works without one. If it is
interrupted, run it again: it does the rest.`,
		Example: `  bcsnetctl rebuild --dry-run=client
  bcsnetctl rebuild --pool blue
  bcsnetctl rebuild --yes -o name`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringSliceVar(&v.names, "pool", nil, "only leases of these `POOLS`, separated by commas")
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	app.CompleteWith(cmd, "pool", resource.CompletePools(s))
	s.DryRun.AddTo(cmd)
	v.output.AddTo(cmd)
	return cmd
}

func (v *verb) Validate() error {
	v.names = app.SortedOnce(v.names)
	return v.output.Validate()
}

func (v *verb) Run(ctx context.Context) error {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	if _, err := api.Named(ctx, v.names); err != nil {
		return err
	}
	a, err := leasing.Start(ctx, v.App, nil)
	if err != nil {
		return err
	}
	defer a.Stop()
	plan, err := v.plan(ctx, a)
	if err != nil {
		return err
	}
	if err := v.show(ctx, plan); err != nil {
		return err
	}
	var made []lease.Lease
	if len(plan.Create) > 0 {
		if v.DryRun == app.DryRunNone && !v.yes {
			if err := v.Confirm(ctx, v.yes, "Make these leases again?"); err != nil {
				return err
			}
			if plan, err = v.replan(ctx, a, plan); err != nil {
				return err
			}
		}
		var late []recovery.Conflict
		made, late, err = v.create(ctx, a, plan.Create)
		plan.Conflicts = append(plan.Conflicts, late...)
	}
	var printed error
	if v.output.Printer != nil {
		printed = resource.PrintLeases(v.App, &v.output, nil, made)
	}
	return app.Several{err, printed, conflictsStay(plan.Conflicts)}.Compact()
}

// replan makes a new plan, because pods may have changed during the question. It returns the part of the shown plan
// that is still needed.
func (v *verb) replan(ctx context.Context, a *leasing.Allocator, shown recovery.Plan) (recovery.Plan, error) {
	now, err := v.plan(ctx, a)
	if err != nil {
		return now, err
	}
	now.Create = slices.DeleteFunc(now.Create, func(l lease.Lease) bool {
		return !slices.ContainsFunc(shown.Create,
			func(o lease.Lease) bool { return o.Addr == l.Addr && o.PodUID == l.PodUID && o.Owner == l.Owner })
	})
	v.warnConflicts(slices.DeleteFunc(slices.Clone(now.Conflicts),
		func(c recovery.Conflict) bool { return slices.Contains(shown.Conflicts, c) }))
	if n := len(shown.Create) - len(now.Create); n > 0 {
		v.Say.Note("%s %s no longer needed", humanize.Plural(n, "lease"), humanize.OneOr(n, "is", "are"))
	}
	return now, nil
}
