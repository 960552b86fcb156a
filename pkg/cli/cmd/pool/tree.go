package pool

import (
	"bytes"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// treeLevels is the number of levels: network, pool, host, address.
const treeLevels = 4

type poolTree struct {
	*app.App
	output printer.Output
	names  []string
	depth  int
}

func newTree(s *app.App) *cobra.Command {
	v := &poolTree{App: s}
	cmd := &cobra.Command{
		Use: "tree [POOL...]", Args: cobra.ArbitraryArgs, RunE: app.Runs(v),
		Short: "Show networks, their pools, hosts and pods as a tree",
		Long: `Show networks, their pools, the hosts that hold addresses of them, and the pods,
as a tree; without a name, of all pools. A pool that is split into blocks has
these under it, with the namespaces that own them. Hosts that hold nothing are
counted only.`,
		Example: `  bcsnetctl pool tree
  bcsnetctl pool tree blue --depth 3`,
		ValidArgsFunction: resource.CompletePools(s),
	}
	cmd.Flags().IntVar(&v.depth, "depth", treeLevels,
		"how many `LEVELS`: 1 networks, 2 pools, 3 hosts, 4 addresses and pods")
	app.Complete(cmd, "depth", "1", "2", "3", "4")
	v.output.AddToView(cmd)
	return cmd
}

func (v *poolTree) Complete(args []string) error {
	v.names = app.SortedOnce(args)
	return nil
}

func (v *poolTree) Validate() error {
	if v.depth < 1 || v.depth > treeLevels {
		return app.Usagef("--depth %d is not 1 to %d", v.depth, treeLevels)
	}
	return v.output.Validate()
}

func (v *poolTree) Run(ctx context.Context) error {
	all, err := resource.ChoosePools(ctx, v.App, v.names)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		v.Say.Note("no pools in %s", v.Where())
		return nil
	}
	blocks, names, err := v.blocks(ctx, all)
	if err != nil {
		return err
	}
	held, err := resource.LeasesHeldIn(ctx, v.App, names,
		func(l lease.Lease) bool { return l.State != lease.Available })
	if err != nil {
		return err
	}
	networks := growTree(resource.WithoutBlocks(all), blocks, held, resource.NodesFor(ctx, v.App, all...))
	if v.output.Printer != nil {
		return v.output.Object(v.Out, treeObjects(networks, v.depth))
	}
	trees := app.Map(networks, networkNode.branch)
	var b bytes.Buffer
	printer.DrawTree(&b, trees, printer.StrokesOf(v.Terminal), v.depth)
	_, err = v.Out.Write(b.Bytes())
	return err
}

// blocks returns the blocks of pools by parent, and the names of the pools whose leases are needed; nil means all.
func (v *poolTree) blocks(ctx context.Context, all []resource.Pool) (map[string][]resource.Pool, []string, error) {
	if len(v.names) == 0 {
		return resource.BlocksOf(all), nil, nil
	}
	if !slices.ContainsFunc(all, func(p resource.Pool) bool { return p.Spec.BlockSize > 0 }) {
		return nil, v.names, nil
	}
	every, err := resource.ChoosePools(ctx, v.App, nil)
	return resource.BlocksOf(every), nil, err
}
