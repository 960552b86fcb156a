package cli

import (
	"context"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

type claimDescribe struct {
	*session
	output output
	in     inNamespace
	arg    string
}

func newClaimDescribe(s *session) *cobra.Command {
	v := &claimDescribe{session: s}
	cmd := &cobra.Command{
		Use: "describe NAME", Aliases: []string{"show"}, Args: takes(1, 1), RunE: runs(v),
		Short: "Show a claim: whose it is, its addresses, when they go back",
		Long: `Show a claim: whose it is, when its addresses go back to their pool, which
addresses it has and which pods have them, the conditions that are not as they
should be, what happened lately, and what to do next. The addresses are read
themselves, so that this is right also while the controller is down.`,
		Example: `  bcsnetctl claim describe deploy-web -n shop
  bcsnetctl claim describe shop/deploy-web -o yaml`,
		ValidArgsFunction: s.completeClaims(&v.in, 1),
	}
	v.output.addToChange(cmd)
	v.in.addTo(s, cmd, "the `NAMESPACE` of the claim")
	return cmd
}

func (v *claimDescribe) Complete(args []string) error {
	v.arg = args[0]
	return v.in.complete(v.session)
}

func (v *claimDescribe) Validate() error { return v.output.validate() }

func (v *claimDescribe) Run(ctx context.Context) error {
	_, c, err := v.claimNamed(ctx, &v.in, v.arg)
	if err != nil {
		return err
	}
	if v.output.printer != nil {
		return v.output.object(v.Out, c.stored)
	}
	d := &claimDescription{session: v.session, claim: c}
	if d.leases, err = v.leasesOf(ctx, c.name()); err != nil {
		return err
	}
	if d.events, err = v.recentEvents(ctx, c.UID); err != nil && !apierrors.IsForbidden(err) {
		v.say.warn("events cannot be read: %v", v.explain(err))
	}
	return d.write()
}

// claimDescription is what is known of a claim.
type claimDescription struct {
	*session
	claim  ipClaim
	leases []ipam.Lease
	events []event
}

// uses are how many of the addresses pods have, and how many are kept.
func uses(leases []ipam.Lease) (used, kept int) {
	for _, l := range leases {
		if l.State == ipam.Active {
			used++
		} else {
			kept++
		}
	}
	return used, kept
}
