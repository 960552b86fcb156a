package top

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// topPool shows pools by use. It reads only their status, so its cost does not depend on the number of addresses.
type topPool struct {
	*app.App
	output printer.Output
	which  resource.Selectors
	name   string
	order  order[poolTop]
}

func newPool(s *app.App) *cobra.Command {
	cmd := poolCommand(s, `Show pools as their status counts them, the fullest first. With --watch, RATE is
how many addresses more are taken in a minute, over the last ten minutes or
since the view began, and FULL IN is when the last one goes if it goes on like
that.`)
	cmd.Use, cmd.Aliases, cmd.Args = "pool [POOL]", []string{"pools"}, app.Takes(0, 1)
	cmd.Short = "Show pools, the fullest first"
	cmd.Example = `  bcsnetctl top pool
  bcsnetctl top pool -w
  bcsnetctl top pool blue -w
  bcsnetctl top pool -l team=payments --sort-by free`
	cmd.ValidArgsFunction = resource.CompletePoolFirst(s, nil)
	return cmd
}

func poolCommand(s *app.App, long string) *cobra.Command {
	v := &topPool{App: s}
	v.order.known = poolOrders()
	cmd := &cobra.Command{Long: long, RunE: app.Runs(v), ValidArgsFunction: cobra.NoFileCompletions}
	v.output.AddToViews(cmd)
	v.order.addTo(cmd)
	follow.AddWatch(&v.output, cmd)
	v.which.AddLabels(cmd, "pools")
	v.which.AddFields(cmd, "pools", "spec.network=net-a")
	return cmd
}

func (v *topPool) Complete(args []string) error {
	if len(args) > 0 {
		v.name = args[0]
	}
	return nil
}

func (v *topPool) Validate() error {
	if v.name != "" && v.which != (resource.Selectors{}) {
		return app.Usagef("a pool name cannot be combined with -l or --field-selector")
	}
	return cmp.Or(v.order.validate(v.output.Watch), v.which.Validate(), v.output.Validate())
}

func (v *topPool) Run(ctx context.Context) error {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	if v.name != "" {
		if _, err := api.Get(ctx, v.name); err != nil {
			return err
		}
		v.which.Fields = follow.Named(v.name)
	}
	if v.output.Watch {
		return v.watch(ctx)
	}
	found, err := api.ListWith(ctx, v.which.Options())
	if err != nil {
		return err
	}
	rows := app.Map(found, func(p resource.Pool) poolTop { return poolTop{p, &trend{now: v.Now}} })
	slices.SortFunc(rows, v.order.compare)
	if v.output.Printer != nil {
		return v.output.Object(v.Out, printer.NewViews(poolKind, rows, v.fields))
	}
	columns := resource.AddUp(v.columns(), rows, func(p poolTop) *v1.BCSNetPool { return p.BCSNetPool })
	if err := printer.NewTable(&v.output, columns).Write(v.Out, rows); err != nil {
		return err
	}
	resource.SumUpPools(v.App, v.which, found)
	return nil
}

func (v *topPool) watch(ctx context.Context) error {
	trends := map[types.UID]*trend{}
	read := func(u *unstructured.Unstructured) (poolTop, error) {
		p, err := resource.ReadPool(u)
		if trends[p.UID] == nil {
			trends[p.UID] = &trend{now: v.Now}
		}
		if resource.Counted(p.BCSNetPool) {
			trends[p.UID].add(p.Status.Active + p.Status.Reserved)
		}
		return poolTop{p, trends[p.UID]}, err
	}
	show := func(w io.Writer, p poolTop) error { return v.output.Object(w, printer.NewView(poolKind, v.fields(p))) }
	note := func(all []poolTop) string {
		found := app.Map(all, func(p poolTop) resource.Pool { return p.Pool })
		return resource.PoolSummary(v.App, v.which, found)
	}
	return follow.WatchObjects(ctx, v.App, follow.Source{Kind: resource.Of(v1.PoolResource), Which: v.which.Options()},
		read, &follow.Watched[poolTop]{
			View:    follow.NewView(v.App, &v.output, v.columns(), show, note),
			Compare: v.order.compare,
			Ranked:  true,
			Items:   map[string]poolTop{},
		})
}
