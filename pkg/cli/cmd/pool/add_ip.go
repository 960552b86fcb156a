package pool

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

type poolAddIP struct {
	*app.App
	output  printer.Output
	name    string
	args    []string
	entries []resource.Entry
}

func newAddIP(s *app.App) *cobra.Command {
	v := &poolAddIP{App: s}
	cmd := &cobra.Command{
		Use: "add-ip POOL ADDRESS...", Aliases: []string{"add-range"}, Args: app.Takes(2, 0), RunE: app.Runs(v),
		Short: "Add addresses, ranges or CIDRs to a pool",
		Long: `Add addresses to a pool: single ones, ranges a-b with both ends, or CIDRs. All
are added or none. Addresses outside the subnet or in another pool are refused,
and entries of which this pool has a part. An entry that it has whole is not an
error. A range that continues another one is merged with it. A group takes
addresses from its parent, if nobody has them there.

- reads addresses from standard input, one entry a line.`,
		Example: `  bcsnetctl pool add-ip blue 10.0.0.64-10.0.0.95
  bcsnetctl pool add-ip blue 10.0.0.20 10.0.0.128/27 --dry-run=server`,
		ValidArgsFunction: resource.CompletePoolFirst(s, nil),
	}
	s.DryRun.AddTo(cmd)
	v.output.AddToChange(cmd)
	return cmd
}

func (v *poolAddIP) Complete(args []string) (err error) {
	v.name = args[0]
	v.args, err = resource.ArgsOrLines(v.App, "addresses", args[1:])
	return err
}

func (v *poolAddIP) Validate() (err error) {
	if v.entries, err = resource.ParseEntries(v.args); err != nil {
		return err
	}
	return v.output.Validate()
}

func (v *poolAddIP) Run(ctx context.Context) error {
	if len(v.entries) == 0 {
		v.Say.Note("standard input named no address: nothing to add")
		return nil
	}
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	var add resource.Addition
	edited, err := api.Edit(ctx, v.name, func(p resource.Pool) (map[string]any, error) {
		others, _, err := api.Others(ctx, v.name)
		if err != nil {
			return nil, err
		}
		if add, err = resource.AddEntries(p.BCSNetPool, others, v.entries); err != nil ||
			slices.Equal(add.List, p.Spec.AvailableIPs) {
			return nil, err
		}
		if err := add.Fit.Check(ctx, v.App); err != nil {
			return nil, err
		}
		return map[string]any{"availableIPs": resource.Values(add.List)}, nil
	})
	if err != nil {
		return err
	}
	if len(add.Same) > 0 {
		v.Say.Note("already in pool %s: %s", v.name, strings.Join(add.Same, ", "))
	}
	for _, w := range add.Warnings {
		v.Say.Warn("%s", w)
	}
	if len(add.Added.Ranges()) > 0 {
		v.Say.Done("%s added to pool %s: %s", resource.Addresses(add.Added), v.name, resource.Spell(add.Added))
	}
	return v.output.Object(v.Out, edited.Stored)
}
