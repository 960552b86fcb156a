package pool

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/internal/suggest"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

type poolRemoveIP struct {
	*app.App
	output  printer.Output
	name    string
	args    []string
	entries []resource.Entry
}

func newRemoveIP(s *app.App) *cobra.Command {
	v := &poolRemoveIP{App: s}
	cmd := &cobra.Command{
		Use: "remove-ip POOL ADDRESS...", Aliases: []string{"remove-range"}, Args: app.Takes(2, 0), RunE: app.Runs(v),
		Short: "Take addresses, ranges or CIDRs out of a pool",
		Long: `Take addresses out of a pool: single ones, ranges a-b with both ends, or CIDRs,
also out of the middle of a range that the pool has. Addresses in use drain:
they stay with their pods and are not allocated again. Addresses of a group
return to its parent; addresses that a group of the pool has are refused.

- reads addresses from standard input, one entry a line.`,
		Example: `  bcsnetctl pool remove-ip blue 10.0.0.70
  bcsnetctl pool remove-ip blue 10.0.0.64-10.0.0.95 --dry-run=client`,
		ValidArgsFunction: resource.CompletePoolFirst(s, func(p resource.Pool) []string { return p.Spec.AvailableIPs }),
	}
	s.DryRun.AddTo(cmd)
	v.output.AddToChange(cmd)
	return cmd
}

func (v *poolRemoveIP) Complete(args []string) (err error) {
	v.name = args[0]
	v.args, err = resource.ArgsOrLines(v.App, "addresses", args[1:])
	return err
}

func (v *poolRemoveIP) Validate() (err error) {
	if v.entries, err = resource.ParseEntries(v.args); err != nil {
		return err
	}
	return v.output.Validate()
}

func (v *poolRemoveIP) Run(ctx context.Context) error {
	if len(v.entries) == 0 {
		v.Say.Note("standard input named no address: nothing to take out")
		return nil
	}
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	all, err := api.List(ctx)
	if err != nil {
		return err
	}
	var gone *netipx.IPSet
	var before, after []string
	edited, err := api.Edit(ctx, v.name, func(p resource.Pool) (map[string]any, error) {
		before = p.Spec.AvailableIPs
		have := resource.SetOfEntries(before)
		for _, e := range v.entries {
			if !have.OverlapsRange(e.IPRange) {
				return nil, v.absent(p, e)
			}
		}
		gone = ipaddr.Intersect(have, ipaddr.SetOf(resource.RangesOf(v.entries)...))
		after = resource.RemoveEntries(before, gone)
		next := p.DeepCopy()
		next.Spec.AvailableIPs = after
		fit := resource.NewFit(resource.Given(replaced(all, p)), store.Pool(next))
		if err := fit.Check(ctx, v.App); err != nil {
			return nil, err
		}
		return map[string]any{"availableIPs": resource.Values(after)}, nil
	})
	if err != nil {
		return err
	}
	v.Say.Done("%s taken out of pool %s: %s", resource.Addresses(gone), v.name, resource.Spell(gone))
	for _, was := range before {
		if !slices.Contains(after, was) {
			if rest := resource.RemoveEntries([]string{was}, gone); len(rest) > 0 {
				v.Say.Note("  %s is now %s", was, humanize.List(rest))
			}
		}
	}
	if asked := ipaddr.SizeOfSet(ipaddr.SetOf(resource.RangesOf(v.entries)...)); asked > ipaddr.SizeOfSet(gone) {
		others := asked - ipaddr.SizeOfSet(gone)
		v.Say.Note("  the other %s %s not in the pool", humanize.Plural(others, "address"),
			humanize.OneOr(others, "was", "were"))
	}
	if len(after) == 0 {
		v.Say.Warn("pool %s has no addresses left", v.name)
		lossesOf(all, replaced(all, edited), resource.NodesFor(ctx, v.App, all...)).warn(v.App)
	}
	v.draining(ctx, all, gone)
	return v.output.Object(v.Out, edited.Stored)
}

func (v *poolRemoveIP) absent(p resource.Pool, e resource.Entry) error {
	f := app.Refuse(ipam.ReasonAddressNotInPool, "%s is not in pool %s", e.Text, v.name)
	if near := suggest.Nearest(e.Text, p.Spec.AvailableIPs); near != "" {
		return f.WithHint("did you mean %s? Its addresses: bcsnetctl pool describe %s", near, v.name)
	}
	return f.WithHint("see its addresses: bcsnetctl pool describe %s", v.name)
}

// draining warns of the addresses that are in use, kept or reserved.
func (v *poolRemoveIP) draining(ctx context.Context, all []resource.Pool, gone *netipx.IPSet) {
	way, err := takenOf(ctx, v.App, all, v.name, func(l lease.Lease) bool { return gone.Contains(l.Addr) })
	if err != nil {
		v.Say.Warn("it is unknown whether some of them are in use: %v", err)
		return
	}
	if n := len(way.InUse); n > 0 {
		v.Say.Warn("%d of them %s in use and will drain: %s", n, humanize.OneOr(n, "is", "are"), way.Holders())
	}
	if n := len(way.Kept); n > 0 {
		v.Say.Warn("%d of them %s with %s, whose next pods get %s: %s", n, humanize.OneOr(n, "stays", "stay"),
			humanize.OneOr(n, "its claim", "their claims"), humanize.OneOr(n, "another one", "others"), way.Keepers())
	}
	if n := len(way.SetAside); n > 0 {
		v.Say.Warn("%d of them %s reserved until %s unreserved: %s", n, humanize.OneOr(n, "stays", "stay"),
			humanize.OneOr(n, "it is", "they are"), way.Reserved())
	}
}
