package claim

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type claimRelease struct {
	*app.App
	output printer.Output
	in     resource.InNamespace
	arg    string
	texts  []string
	only   []netip.Addr
	reason string
	yes    bool
}

func newRelease(s *app.App) *cobra.Command {
	v := &claimRelease{App: s}
	cmd := &cobra.Command{
		Use: "release NAME", Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Release the addresses that a claim keeps and no pod has",
		Long: `Release the addresses that a claim keeps and no pod has, after a question. They
return to their pools. Addresses that pods have stay with them. The claim stays,
and its next pods get other addresses; for a claim that preallocates, the
controller takes others at once. The released addresses go to standard output,
as they were before.`,
		Example: `  bcsnetctl claim release deploy-web -n shop
  bcsnetctl claim release shop/sts-db --address 10.0.0.20 --yes --reason "db-2 is gone for good"`,
		ValidArgsFunction: app.First(resource.CompleteClaims(s, &v.in)),
	}
	cmd.Flags().StringSliceVar(&v.texts, "address", nil, "only this `ADDRESS`; repeatable")
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	app.CompleteWith(cmd, "address", resource.CompleteLeases(s, resource.Retained()))
	app.AddReason(cmd, &v.reason)
	v.in.AddTo(s, cmd, "the `NAMESPACE` of the claim")
	s.DryRun.AddTo(cmd)
	v.output.AddTo(cmd)
	return cmd
}

func (v *claimRelease) Complete(args []string) error {
	v.arg = args[0]
	return v.in.Complete(v.App)
}

func (v *claimRelease) Validate() (err error) {
	if v.only, err = resource.ParseAddresses(v.texts); err != nil {
		return err
	}
	if err := app.CheckText("--reason", v.reason, lease.MaxPastReason); err != nil {
		return err
	}
	return v.output.Validate()
}

func (v *claimRelease) Run(ctx context.Context) error {
	if err := resource.FitLengths(ctx, v.App, v.texts); err != nil {
		return err
	}
	key, err := v.in.Key(v.arg)
	if err != nil {
		return err
	}
	all, err := resource.LeasesOfClaim(ctx, v.App, key.String())
	if err != nil {
		return err
	}
	if len(all) == 0 { // the claim may be gone while it still keeps addresses; a name that never existed is misspelt
		if _, _, err := resource.ClaimNamed(ctx, v.App, &v.in, v.arg); err != nil {
			return err
		}
	}
	if err := v.known(key.String(), all); err != nil {
		return err
	}
	if len(v.only) > 0 {
		all = slices.DeleteFunc(all, func(l lease.Lease) bool { return !slices.Contains(v.only, l.Addr) })
	}
	kept := v.sort(key.String(), all)
	leasing.WarnRefill(ctx, v.App, kept)
	if len(kept) > 0 {
		if err := v.Confirm(ctx, v.yes, fmt.Sprintf("Release %s?", humanize.Plural(len(kept),
			"address"))); err != nil {
			return err
		}
	}
	leases, err := v.Leases()
	if err != nil {
		return err
	}
	change := leasing.ReleaseBy(ctx, v.App, len(kept), v.reason)
	return leasing.GiveUp(ctx, v.App, &v.output, kept, "released", func(_ int, l lease.Lease) error {
		return leasing.GiveUpOne(ctx, v.App, leases, l, change, leasing.Giving{})
	}, nil)
}

// known refuses addresses that do not belong to the claim.
func (v *claimRelease) known(name string, all []lease.Lease) error {
	var failed app.Several
	for _, a := range v.only {
		if !slices.ContainsFunc(all, func(l lease.Lease) bool { return l.Addr == a }) {
			failed = append(failed, app.Refuse(ipam.ReasonAddressNotHeld, "claim %s does not have address %s", name, a).
				WithHint("see what it has: bcsnetctl claim describe %s", name))
		}
	}
	if len(failed) > 0 {
		return resource.NoneDone(v.App, len(v.only), "released", failed)
	}
	return nil
}

// sort announces the effect on the addresses, and returns those that are kept.
func (v *claimRelease) sort(name string, all []lease.Lease) (kept []lease.Lease) {
	for _, l := range all {
		if l.State != lease.Active {
			kept = append(kept, l)
			v.Say.Start("%s of pool %s: %s; no pod has it, and it returns to the pool", l.Addr, l.Pool,
				resource.RetainedText(l))
			continue
		}
		v.Say.Note("%s stays: %s has it", l.Addr, l.Where())
	}
	if len(kept) == 0 {
		v.Say.Note("claim %s keeps no address that could be released", name)
	}
	return kept
}
