package inspect

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
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
