package inspect

import (
	"context"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
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

// kind is what can be inspected.
type kind struct {
	name, arg, short, long, example string
	completes                       cobra.CompletionFunc
	// check refuses words that cannot name one; nil where the API server tells.
	check func(word string) error
	// choose chooses pools and addresses.
	choose func(ctx context.Context, v *inspection) error
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

// formatWide is the output format that leaves no range out.
const formatWide = "wide"

// inspection is one call of inspect.
type inspection struct {
	*app.App
	output printer.Output
	kind   kind
	name   string
	// head says what was inspected, line by line.
	head []headLine
	// all are the pools of the cluster, index has them and what is held.
	all   []resource.Pool
	index *ipam.Index
	// chosen are the names of the pools to show.
	chosen []string
	// whole: blocks are shown as their parents.
	whole bool
	// mine reports whether an address is of the host or namespace; nil where all addresses of the pools are meant.
	mine func(lease.Lease) bool
}

type headLine struct{ label, text string }

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

func (v *inspection) Run(ctx context.Context) (err error) {
	if v.all, err = resource.AllPools(ctx, v.App); err != nil {
		return err
	}
	v.index = resource.IndexOf(v.App, v.all)
	if err := v.kind.choose(ctx, v); err != nil {
		return err
	}
	if err := resource.FillHeld(ctx, v.App, v.index, v.chosen); err != nil {
		return err
	}
	views := v.views()
	if len(views) == 0 && v.kind.name == "host" {
		v.Say.Warn("host %s is in no pool, and has no address", v.name)
		v.Hint("see the hosts: bcsnetctl host list")
	}
	if v.output.Printer != nil {
		return v.output.Object(v.Out, v.object(views))
	}
	return v.write(views)
}

// view is what is shown of one pool.
type view struct {
	pool resource.Pool
	ipam.Ranges
	// beside: the host or namespace has addresses of the pool, and draws no more from it.
	beside bool
	// gives: the namespace may get blocks of the pool, and draws from these.
	gives bool
}

// views sorts the addresses of the chosen pools, and of those in which the host or namespace has something.
func (v *inspection) views() (out []view) {
	chosen := map[string]bool{}
	for _, name := range v.chosen {
		chosen[name] = true
	}
	mine := map[string][2][]netip.Addr{} // allocated and reserved
	if v.mine != nil {
		v.index.Leases.Each(func(l lease.Lease) {
			if l.State == lease.Available || !v.mine(l) {
				return
			}
			name := l.Pool
			if p, _ := v.index.Pools.Get(name); v.whole && p.Block {
				name = p.Parent
			}
			of, at := mine[name], 0
			if l.State == lease.Reserved {
				at = 1
			}
			of[at] = append(of[at], l.Addr)
			mine[name] = of
		})
	}
	byName := map[string]resource.Pool{}
	names := v.chosen
	for _, p := range v.all {
		byName[p.Name] = p
		if len(mine[p.Name][0])+len(mine[p.Name][1]) > 0 && !chosen[p.Name] {
			names = append(names, p.Name)
		}
	}
	for _, name := range names {
		one := view{pool: byName[name], Ranges: v.index.Pools.Ranges(name, v.Now()), beside: !chosen[name]}
		if v.mine != nil {
			one.Active, one.Reserved = ipaddr.SetOfAddrs(mine[name][0]...), ipaddr.SetOfAddrs(mine[name][1]...)
			one.Others = ipaddr.SetOf() // theirs are not the question
		}
		one.gives = v.mine != nil && !v.whole && one.pool.Spec.BlockSize > 0
		if one.beside || one.gives {
			one.Free, one.Cooling = ipaddr.SetOf(), ipaddr.SetOf()
		}
		out = append(out, one)
	}
	return out
}
