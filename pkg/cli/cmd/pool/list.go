package pool

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

type poolList struct {
	*app.App
	output printer.Output
	which  resource.Selectors
}

func newList(s *app.App) *cobra.Command {
	v := &poolList{App: s}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls", "get"}, Args: app.Takes(0, 0), RunE: app.Runs(v),
		Short: "List pools and how full they are",
		Long: `List pools and how full they are, as their status says. STATE is Ready, or the
gravest thing to know; bcsnetctl pool describe says more. Unseen means that no
controller has looked at the pool yet. The blocks of a pool that is split are
counted with it; bcsnetctl pool tree shows them.`,
		Example: `  bcsnetctl pool list
  bcsnetctl pool list -o wide -l team=payments
  bcsnetctl pool list --field-selector spec.network=net-a
  bcsnetctl pool list --sort-by .status.available
  bcsnetctl pool list --watch
  bcsnetctl pool list -o custom-columns=NAME:metadata.name,FREE:status.available`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.output.AddTo(cmd)
	v.output.AddSort(cmd, ".status.available")
	follow.AddWatch(&v.output, cmd)
	v.which.AddLabels(cmd, "pools")
	v.which.AddFields(cmd, "pools", "spec.network=net-a")
	return cmd
}

func (v *poolList) Validate() error { return cmp.Or(v.which.Validate(), v.output.Validate()) }

func (v *poolList) Run(ctx context.Context) error {
	if v.output.Watch {
		return v.watch(ctx)
	}
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	all, err := api.ListWith(ctx, v.which.Options())
	if err != nil {
		return err
	}
	all = resource.WithoutBlocks(all)
	if err := printer.Sorted(&v.output.Sort, all,
		func(p resource.Pool) (printer.SortKey, error) { return v.output.Sort.Key(p.Stored.Object) }); err != nil {
		return err
	}
	if v.output.Printer != nil {
		return v.output.List(v.Out, app.Map(all, resource.Pool.Object))
	}
	columns := resource.AddUp(resource.PoolColumns(v.App), all,
		func(p resource.Pool) *v1.BCSNetPool { return p.BCSNetPool })
	if err := printer.NewTable(&v.output, columns).Write(v.Out, all); err != nil {
		return err
	}
	resource.SumUpPools(v.App, v.which, all)
	return nil
}

func (v *poolList) watch(ctx context.Context) error {
	summary := func(all []resource.Pool) string { return resource.PoolSummary(v.App, v.which, all) }
	show := func(w io.Writer, p resource.Pool) error { return v.output.Object(w, p.Stored) }
	return follow.WatchObjects(ctx, v.App, follow.Source{Kind: resource.Of(v1.PoolResource), Which: v.which.Options()},
		resource.ReadPool,
		&follow.Watched[resource.Pool]{
			View:    follow.NewView(v.App, &v.output, resource.PoolColumns(v.App), show, summary),
			Compare: func(a, b resource.Pool) int { return cmp.Compare(a.Name, b.Name) },
			Items:   map[string]resource.Pool{},
		})
}
