package inspect

import (
	"context"

	"github.com/spf13/cobra"
	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// New returns the command inspect.
func New(s *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "inspect", GroupID: "objects",
		Short: "Show which addresses are allocated, free, reserved and cooling",
		Long: `Show which addresses are allocated, free, reserved and cooling, as ranges
"a-b, c": of a pool or group, of the pools of a network, or as a host or a
namespace sees the pools that it draws from. What is free is decided here as the
controller decides it, from the objects as they are; nothing is changed.`,
		Example: `  bcsnetctl inspect pool blue
  bcsnetctl inspect network prod -o json
  bcsnetctl inspect namespace shop`,
	}
	for _, k := range kinds(s) {
		cmd.AddCommand(k.command(s))
	}
	return cmd
}

// kind is a kind of objects that can be inspected.
type kind struct {
	name, arg, short, long, example string
	completes                       cobra.CompletionFunc
	// check refuses an invalid name; nil if the API server checks it.
	check func(word string) error
	// choose selects pools and addresses.
	choose func(v *view.Inspection, ctx context.Context) error
}

func (k kind) command(s *app.App) *cobra.Command {
	v := &inspection{App: s, kind: k}
	cmd := &cobra.Command{
		Use: k.name + " " + k.arg, Args: app.Takes(1, 1), RunE: app.Runs(v), Short: k.short,
		Long: k.long + `

An address is allocated when somebody has it, reserved when a claim keeps it or
somebody set it aside, and cooling when it rests after its release. Others are
addresses that the pool has and that are not free for another reason: a node has
it itself, or it is a lease of another pool. Of many ranges the first are shown;
-o wide, json and yaml have all.`,
		Example: k.example, ValidArgsFunction: k.completes,
	}
	v.output.AddToView(cmd, formatWide)
	return cmd
}

// formatWide is the output format that shows all ranges.
const formatWide = "wide"

// inspection is one call of inspect.
type inspection struct {
	*app.App
	output printer.Output
	kind   kind
	name   string
}

func (v *inspection) Complete(args []string) error {
	v.name = args[0]
	return nil
}

func (v *inspection) Validate() error {
	if v.kind.check != nil {
		if err := v.kind.check(v.name); err != nil {
			return err
		}
	}
	return v.output.Validate()
}

func (v *inspection) Run(ctx context.Context) error {
	found, err := view.Inspect(ctx, v.App, v.name, v.kind.choose)
	if err != nil {
		return err
	}
	pools := found.Pools()
	if len(pools) == 0 && v.kind.name == "host" {
		v.Say.Warn("host %s is in no pool, and has no address", v.name)
		v.Hint("see the hosts: bcsnetctl host list")
	}
	if v.output.Printer != nil {
		return v.output.Object(v.Out, v.object(found, pools))
	}
	return v.write(found, pools)
}

func kinds(s *app.App) []kind {
	return []kind{
		{
			name: "pool", arg: "POOL", short: "Show the addresses of a pool by their state",
			long: `Show which addresses of a pool are allocated, free, reserved and cooling.`,
			example: "  bcsnetctl inspect pool blue\n  bcsnetctl inspect pool blue -o " +
				"jsonpath='{.pools[0].free.ranges[*]}'",
			completes: resource.CompletePoolFirst(s, nil), choose: (*view.Inspection).Pool,
		},
		{
			name: "network", arg: "NETWORK", short: "Show the addresses of the pools of a network by their state",
			long: `Show which addresses of the pools of a network, and of their groups, are
allocated, free, reserved and cooling, pool by pool and together.`,
			example:   "  bcsnetctl inspect network prod\n  bcsnetctl inspect network prod -o json",
			completes: resource.CompleteNetworks(s), choose: (*view.Inspection).Network,
		},
		{
			name: "group", arg: "GROUP", short: "Show the addresses of a group by their state",
			long: `Show which addresses of a group, a pool that is a part of another one, are
allocated, free, reserved and cooling.`,
			example:   "  bcsnetctl inspect group blue-payments\n  bcsnetctl inspect group blue-payments -o json",
			completes: resource.CompleteGroups(s), choose: (*view.Inspection).Group,
		},
		{
			name: "host", arg: "HOST|NODE", short: "Show which addresses a host has, and which are free for it",
			long: `Show which addresses are allocated on a host, which is named by its IP or its
node, and which are free in the pools that it may draw from.`,
			example:   "  bcsnetctl inspect host 10.0.0.11\n  bcsnetctl inspect host node-1 -o yaml",
			completes: resource.CompleteOneHost(s), check: resource.CheckHost, choose: (*view.Inspection).Host,
		},
		{
			name: "namespace", arg: "NAMESPACE",
			short: "Show which addresses a namespace has, and which are free for it",
			long: `Show which addresses pods of a namespace have, which its claims keep, and which
are free in the pools that it draws from, in the order in which these are tried.`,
			example:   "  bcsnetctl inspect namespace shop\n  bcsnetctl inspect namespace shop -o json",
			completes: app.First(resource.CompleteNamespaces(s)), check: resource.CheckNamespace,
			choose: (*view.Inspection).Namespace,
		},
	}
}

// object returns the inspection for -o json and similar formats, with all ranges.
func (v *inspection) object(found *view.Inspection, views []view.Ranges) *unstructured.Unstructured {
	pools := []any{}
	total := map[string]uint64{}
	for _, one := range views {
		o := map[string]any{
			"pool": one.Pool.Name, "cidr": resource.CidrOf(one.Pool.BCSNetPool), "gateway": one.Pool.Spec.Gateway,
			"handsOut": one.Stopped == "",
		}
		if found.Mine != nil {
			o["draws"] = !one.Beside
		}
		for _, p := range one.Parts() {
			ranges := app.Map(p.Set.Ranges(), func(r netipx.IPRange) any { return ipaddr.FormatRange(r) })
			n := ipaddr.SizeOfSet(p.Set)
			total[p.State] = ipaddr.AddSaturated(total[p.State], n)
			o[p.State] = map[string]any{"count": app.Saturated(n), "ranges": ranges}
		}
		pools = append(pools, o)
	}
	o := map[string]any{v.kind.name: v.name, "pools": pools}
	for _, p := range (view.Ranges{}).Parts() {
		o[p.State] = app.Saturated(total[p.State])
	}
	return printer.NewView("Inspection", o)
}
