package address

import (
	"context"

	"github.com/spf13/cobra"
	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// ipReserve runs ip reserve and ip unreserve.
type ipReserve struct {
	leasing.SetAside
	args []string
	// chooses: count free addresses of a pool are chosen instead of named ones.
	count      int
	pool       string
	contiguous bool
	chooses    bool
}

func newReserve(s *app.App) *cobra.Command {
	v := &ipReserve{SetAside: leasing.SetAside{App: s, Reserve: true}}
	cmd := v.command(&cobra.Command{
		Use: "reserve ADDRESS...", Short: "Set free addresses aside: nobody gets them",
		Long: `Set free addresses aside: single ones, ranges a-b with both ends, or CIDRs, up
to 4096 in one call. They stay in their pool, and nobody gets them until they
are unreserved. Addresses in use, addresses that a claim keeps and addresses of
no pool are refused before any is set aside; one that is set aside already is no
error.

With --count and --pool in place of addresses, so many free addresses of the
pool, the lowest, or with --contiguous the lowest that are in a row.

- reads addresses from standard input, one entry a line.`,
		Example: `  bcsnetctl ip reserve 10.0.0.20 --reason "printer on floor 3"
  bcsnetctl ip reserve 10.0.0.64-10.0.0.79 10.0.0.128/28 --dry-run=client
  bcsnetctl ip reserve --pool blue --count 10 --contiguous --reason "rack 7"`,
		ValidArgsFunction: cobra.NoFileCompletions,
	})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		f := cmd.Flags()
		if v.chooses = f.Changed("count") || f.Changed("pool") || f.Changed("contiguous"); v.chooses {
			return app.Takes(0, 0)(cmd, args)
		}
		return app.Takes(1, 0)(cmd, args)
	}
	cmd.Flags().IntVar(&v.count, "count", 0, "`N` free addresses of --pool, in place of addresses")
	cmd.Flags().StringVar(&v.pool, "pool", "", "the `POOL` of --count")
	cmd.Flags().BoolVar(&v.contiguous, "contiguous", false, "the addresses of --count are in a row")
	app.Complete(cmd, "count")
	app.CompleteWith(cmd, "pool", resource.CompletePools(s))
	return cmd
}

func newUnreserve(s *app.App) *cobra.Command {
	return (&ipReserve{SetAside: leasing.SetAside{App: s}}).command(&cobra.Command{
		Use: "unreserve ADDRESS...", Short: "End the reservation of addresses",
		Long: `End the reservation of addresses, so that they can be allocated again: single
ones, ranges a-b with both ends, or CIDRs, up to 4096 in one call. Addresses in
use, and addresses that a claim keeps, are refused before any is changed. An
address that is not reserved is not an error.

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

// Run sets the addresses aside, or returns them.
func (v *ipReserve) Run(ctx context.Context) error {
	if err := resource.FitLengths(ctx, v.App, v.args); err != nil {
		return err
	}
	if v.count > 0 {
		free := &ipFree{App: v.App, pool: v.pool}
		runs, err := free.rows(ctx)
		if err != nil {
			return err
		}
		if v.Entries, err = v.chosen(runs); err != nil {
			return err
		}
	}
	return v.SetAside.Run(ctx)
}

// chosen returns the lowest free addresses of the pool, as many as --count says.
func (v *ipReserve) chosen(runs []run) (out []resource.Entry, err error) {
	left, longest := uint64(v.count), uint64(0)
	for _, r := range runs {
		longest = max(longest, r.size())
		if v.contiguous && r.size() < left {
			continue
		}
		part := netipx.IPRangeFrom(r.From(), ipaddr.Advance(r.From(), min(left, r.size())-1))
		out = append(out, resource.Entry{IPRange: part, Text: ipaddr.FormatRange(part)})
		if left -= ipaddr.Size(part); left == 0 {
			return out, nil
		}
	}
	what, most := "free addresses: it has %d", uint64(v.count)-left
	if v.contiguous {
		what, most = "consecutive free addresses: the longest range has %d", longest
	}
	return nil, app.Refuse(ipam.ReasonPoolExhausted, "pool %s does not have %d "+what, v.pool, v.count, most).
		WithHint("see which are free: bcsnetctl ip free %s", v.pool)
}

func (v *ipReserve) Validate() (err error) {
	if v.chooses && (v.count < 1 || v.pool == "") {
		return app.Usagef("--count, of one address or more, goes with --pool").
			WithHint("for example: bcsnetctl ip reserve --pool blue --count 10 --contiguous")
	}
	if v.Entries, err = resource.ParseEntries(resource.AddressWords(v.args)); err != nil {
		return err
	}
	named := ipaddr.SizeOfSet(ipaddr.SetOf(resource.RangesOf(v.Entries)...))
	if err := resource.NotTooMany(max(uint64(v.count), named)); err != nil {
		return err
	}
	if err := app.CheckText("--reason", v.Reason, lease.MaxPastReason); err != nil {
		return err
	}
	return v.Output.Validate()
}
