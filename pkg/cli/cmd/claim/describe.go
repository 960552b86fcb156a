package claim

import (
	"context"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type claimDescribe struct {
	*app.App
	output printer.Output
	in     resource.InNamespace
	arg    string
}

func newDescribe(s *app.App) *cobra.Command {
	v := &claimDescribe{App: s}
	cmd := &cobra.Command{
		Use: "describe NAME", Aliases: []string{"show"}, Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Show a claim: whose it is, its addresses, when they go back",
		Long: `Show a claim: whose it is, when its addresses go back to their pool, which
addresses it has and which pods have them, the conditions that are not as they
should be, what happened lately, and what to do next. The addresses are read
themselves, so that this is right also while the controller is down.`,
		Example: `  bcsnetctl claim describe deploy-web -n shop
  bcsnetctl claim describe shop/deploy-web -o yaml`,
		ValidArgsFunction: resource.CompleteClaims(s, &v.in, 1),
	}
	v.output.AddToChange(cmd)
	v.in.AddTo(s, cmd, "the `NAMESPACE` of the claim")
	return cmd
}

func (v *claimDescribe) Complete(args []string) error {
	v.arg = args[0]
	return v.in.Complete(v.App)
}

func (v *claimDescribe) Validate() error { return v.output.Validate() }

func (v *claimDescribe) Run(ctx context.Context) error {
	_, c, err := resource.ClaimNamed(ctx, v.App, &v.in, v.arg)
	if err != nil {
		return err
	}
	if v.output.Printer != nil {
		return v.output.Object(v.Out, c.Stored)
	}
	d := &description{App: v.App, claim: c}
	if d.leases, err = resource.LeasesOfClaim(ctx, v.App, c.FullName()); err != nil {
		return err
	}
	if d.events, err = resource.RecentEvents(ctx, v.App, c.UID); err != nil && !apierrors.IsForbidden(err) {
		v.Say.Warn("events cannot be read: %v", resource.Explain(v.App, err))
	}
	return d.write()
}

// description gathers what describe shows of a claim.
type description struct {
	*app.App
	claim  resource.Claim
	leases []lease.Lease
	events []resource.Event
}

// uses counts the addresses that pods have, and those that are kept.
func uses(leases []lease.Lease) (used, kept int) {
	for _, l := range leases {
		if l.State == lease.Active {
			used++
		} else {
			kept++
		}
	}
	return used, kept
}
