package cli

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// treeLevels are the levels of the tree of pools: network, pool, host, address.
const treeLevels = 4

type poolTree struct {
	*session
	output output
	names  []string
	depth  int
}

func newPoolTree(s *session) *cobra.Command {
	v := &poolTree{session: s}
	cmd := &cobra.Command{
		Use: "tree [POOL...]", Args: cobra.ArbitraryArgs, RunE: runs(v),
		Short: "Show networks, their pools, hosts and pods as a tree",
		Long: `Show networks, their pools, the hosts that hold addresses of them, and the pods,
as a tree; without a name, of all pools. Hosts that hold nothing are counted
only.`,
		Example: `  bcsnetctl pool tree
  bcsnetctl pool tree blue --depth 3`,
		ValidArgsFunction: s.completePools,
	}
	cmd.Flags().IntVar(&v.depth, "depth", treeLevels, "how many `LEVELS`: 1 networks, 2 pools, 3 hosts, 4 addresses and pods")
	complete(cmd, "depth", "1", "2", "3", "4")
	v.output.addToView(cmd)
	return cmd
}

func (v *poolTree) Complete(args []string) error {
	v.names = sortedOnce(args)
	return nil
}

func (v *poolTree) Validate() error {
	if v.depth < 1 || v.depth > treeLevels {
		return usagef("--depth %d is not 1 to %d", v.depth, treeLevels)
	}
	return v.output.validate()
}

func (v *poolTree) Run(ctx context.Context) error {
	all, err := v.choosePools(ctx, v.names)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		v.say.note("no pools in %s", v.where())
		return nil
	}
	held, err := v.heldIn(ctx, v.names, func(l ipam.Lease) bool { return l.State != ipam.Available })
	if err != nil {
		return err
	}
	networks := growTree(all, held, v.nodesInSubnets(ctx, all...))
	if v.output.printer != nil {
		return v.output.object(v.Out, treeObjects(networks, v.depth))
	}
	var trees []branch
	for _, n := range networks {
		trees = append(trees, n.branch())
	}
	var b bytes.Buffer
	drawTree(&b, trees, v.out.strokes(), v.depth)
	_, err = v.Out.Write(b.Bytes())
	return err
}

// choosePools reads the pools that were named, each once, or all.
func (s *session) choosePools(ctx context.Context, names []string) ([]pool, error) {
	api, err := s.pools()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return api.list(ctx)
	}
	return api.named(ctx, names)
}

// heldIn are the addresses of pools that match takes, in order; of all pools where none is named.
func (s *session) heldIn(ctx context.Context, names []string, match func(ipam.Lease) bool) ([]ipam.Lease, error) {
	if len(names) == 0 {
		return s.held(ctx, leaseQuery{}, match)
	}
	var all []ipam.Lease
	for _, name := range names {
		held, err := s.held(ctx, leaseQuery{pool: name}, match)
		if err != nil {
			return nil, err
		}
		all = append(all, held...)
	}
	return all, nil
}
