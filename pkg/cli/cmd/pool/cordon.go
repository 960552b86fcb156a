package pool

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// poolCordon stops or resumes allocations from pools.
type poolCordon struct {
	*app.App
	output printer.Output
	names  []string
	cordon bool
}

func newCordon(s *app.App) *cobra.Command {
	return (&poolCordon{App: s, cordon: true}).command(&cobra.Command{
		Use: "cordon POOL...", Short: "Allocate nothing new from pools",
		Long: `Allocate nothing new from pools. Pods keep their addresses while they run. If
a node restarts, its pods count as new: see "Before you restart nodes" in the
operator guide.`,
		Example: `  bcsnetctl pool cordon blue
  bcsnetctl pool cordon blue green --dry-run=server`,
	})
}

func newUncordon(s *app.App) *cobra.Command {
	return (&poolCordon{App: s}).command(&cobra.Command{
		Use: "uncordon POOL...", Short: "Allocate from pools again",
		Long:    "Allocate from pools again.",
		Example: `  bcsnetctl pool uncordon blue`,
	})
}

func (v *poolCordon) command(cmd *cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE, cmd.ValidArgsFunction = app.Takes(1, 0), app.Runs(v), resource.CompletePools(v.App)
	v.DryRun.AddTo(cmd)
	v.output.AddToChange(cmd)
	return cmd
}

func (v *poolCordon) Complete(args []string) error {
	v.names = args
	return nil
}

func (v *poolCordon) Validate() error { return v.output.Validate() }

func (v *poolCordon) Run(ctx context.Context) error {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	var failed app.Several
	for _, name := range v.names {
		if err := v.one(ctx, api, name); err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return failed.OrNil()
}

func (v *poolCordon) one(ctx context.Context, api *resource.Pools, name string) error {
	changed := false
	edited, err := api.Edit(ctx, name, func(p resource.Pool) (map[string]any, error) {
		if changed = p.Spec.Cordoned != v.cordon; !changed {
			return nil, nil
		}
		if !v.cordon {
			return map[string]any{"cordoned": nil}, nil
		}
		return map[string]any{"cordoned": true}, nil
	})
	if err != nil {
		return err
	}
	switch {
	case !changed:
		v.Say.Note("pool %s is %s", name, map[bool]string{true: "cordoned already", false: "not cordoned"}[v.cordon])
	case !v.cordon:
		v.Say.Done("pool %s uncordoned", name)
	case edited.Status.Active > 0:
		n := edited.Status.Active
		v.Say.Done("pool %s cordoned; %s in use %s", name, humanize.Plural(n, "address"),
			humanize.OneOr(n, "stays as it is", "stay as they are"))
	default:
		v.Say.Done("pool %s cordoned", name)
	}
	return v.output.Object(v.Out, edited.Stored)
}
