package address

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// ipReserve runs ip reserve and ip unreserve.
type ipReserve struct {
	leasing.SetAside
	args []string
}

func newReserve(s *app.App) *cobra.Command {
	v := &ipReserve{SetAside: leasing.SetAside{App: s, Reserve: true}}
	return v.command(&cobra.Command{
		Use: "reserve ADDRESS...", Short: "Set free addresses aside: nobody gets them",
		Long: `Set free addresses aside: single ones, ranges a-b with both ends, or CIDRs, up
to 4096 in one call. They stay in their pool, and nobody gets them until they
are unreserved. Addresses in use, addresses that a claim keeps and addresses of
no pool are refused before any is set aside; one that is set aside already is no
error.

- reads addresses from standard input, one entry a line.`,
		Example: `  bcsnetctl ip reserve 10.0.0.20 --reason "printer on floor 3"
  bcsnetctl ip reserve 10.0.0.64-10.0.0.79 10.0.0.128/28 --dry-run=client`,
		ValidArgsFunction: cobra.NoFileCompletions,
	})
}

func newUnreserve(s *app.App) *cobra.Command {
	return (&ipReserve{SetAside: leasing.SetAside{App: s}}).command(&cobra.Command{
		Use: "unreserve ADDRESS...", Short: "Have reserved addresses handed out again",
		Long: `Have reserved addresses handed out again: single ones, ranges a-b with both
ends, or CIDRs, up to 4096 in one call. Addresses in use, and addresses that a
claim keeps, are refused before any is changed; one that is not reserved is no
error.

- reads addresses from standard input, one entry a line.`,
		Example: `  bcsnetctl ip unreserve 10.0.0.20
  bcsnetctl ip unreserve 10.0.0.64-10.0.0.79 --reason "lab closed"`,
		ValidArgsFunction: resource.CompleteLeases(s, resource.SetAside()),
	})
}

func (v *ipReserve) command(cmd *cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = app.Takes(1, 0), app.Runs(v)
	app.AddReason(cmd, &v.Reason)
	v.DryRun.AddTo(cmd)
	v.Output.AddToChange(cmd)
	return cmd
}

func (v *ipReserve) Complete(args []string) (err error) {
	v.args, err = resource.ArgsOrLines(v.App, "addresses", args)
	return err
}

// Run sets the addresses aside, or ends that.
func (v *ipReserve) Run(ctx context.Context) error {
	if err := resource.FitLengths(ctx, v.App, v.args); err != nil {
		return err
	}
	return v.SetAside.Run(ctx)
}

func (v *ipReserve) Validate() (err error) {
	if v.Entries, err = resource.ParseEntries(resource.AddressWords(v.args)); err != nil {
		return err
	}
	if err := resource.NotTooMany(ipaddr.SetOf(resource.RangesOf(v.Entries)...)); err != nil {
		return err
	}
	if err := app.CheckText("--reason", v.Reason, lease.MaxPastReason); err != nil {
		return err
	}
	return v.Output.Validate()
}
