package cli

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

type claimRelease struct {
	*session
	output output
	in     inNamespace
	arg    string
	texts  []string
	only   []netip.Addr
	reason string
	yes    bool
}

func newClaimRelease(s *session) *cobra.Command {
	v := &claimRelease{session: s}
	cmd := &cobra.Command{
		Use: "release NAME", Args: takes(1, 1), RunE: runs(v),
		Short: "Give back the addresses that a claim keeps and no pod has",
		Long: `Give the addresses that a claim keeps and no pod has back to their pools, after
a question. Addresses that pods have stay with them. The claim stays, and its
next pods get other addresses; for a claim that takes its addresses before pods
ask, the controller takes others at once. What was given back goes to standard
output, as it was before.`,
		Example: `  bcsnetctl claim release deploy-web -n shop
  bcsnetctl claim release shop/sts-db --address 10.0.0.20 --yes --reason "db-2 is gone for good"`,
		ValidArgsFunction: s.completeClaims(&v.in, 1),
	}
	cmd.Flags().StringSliceVar(&v.texts, "address", nil, "only this `ADDRESS`; repeatable")
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	completeWith(cmd, "address", s.completeLeases(kept()))
	addReason(cmd, &v.reason)
	v.in.addTo(s, cmd, "the `NAMESPACE` of the claim")
	s.dry.addTo(cmd)
	v.output.addTo(cmd)
	return cmd
}

func (v *claimRelease) Complete(args []string) error {
	v.arg = args[0]
	return v.in.complete(v.session)
}

func (v *claimRelease) Validate() (err error) {
	if v.only, err = parseAddresses(v.texts); err != nil {
		return err
	}
	if err := checkText("--reason", v.reason, ipam.MaxPastReason); err != nil {
		return err
	}
	return v.output.validate()
}

func (v *claimRelease) Run(ctx context.Context) error {
	key, err := v.in.key(v.arg)
	if err != nil {
		return err
	}
	all, err := v.leasesOf(ctx, key.String())
	if err != nil {
		return err
	}
	if len(all) == 0 { // addresses may outlive the object of their claim; one that never was is misspelt
		if _, _, err := v.claimNamed(ctx, &v.in, v.arg); err != nil {
			return err
		}
	}
	if err := v.known(key.String(), all); err != nil {
		return err
	}
	if len(v.only) > 0 {
		all = slices.DeleteFunc(all, func(l ipam.Lease) bool { return !slices.Contains(v.only, l.Addr) })
	}
	kept := v.sort(key.String(), all)
	v.warnRefill(ctx, kept)
	if len(kept) > 0 && v.dry == dryRunNone && !v.yes {
		if err := v.confirm(ctx, fmt.Sprintf("Give %s back?", humanize.Plural(len(kept), "address"))); err != nil {
			return err
		}
	}
	leases, err := v.leases()
	if err != nil {
		return err
	}
	return v.giveUpAll(ctx, leases, &v.output, kept, "given back", v.reason, nil)
}

// known refuses addresses that are not the claim's.
func (v *claimRelease) known(name string, all []ipam.Lease) error {
	var failed several
	for _, a := range v.only {
		if !slices.ContainsFunc(all, func(l ipam.Lease) bool { return l.Addr == a }) {
			failed = append(failed, refuse(ipam.ReasonAddressNotHeld, "claim %s does not have address %s", name, a).
				withHint("see what it has: bcsnetctl claim describe %s", name))
		}
	}
	if len(failed) > 0 {
		return v.none(len(v.only), "given back", failed)
	}
	return nil
}

// sort says what becomes of the addresses, and returns those that are kept.
func (v *claimRelease) sort(name string, all []ipam.Lease) (kept []ipam.Lease) {
	for _, l := range all {
		if l.State != ipam.Active {
			kept = append(kept, l)
			v.say.start("%s of pool %s: %s; no pod has it, and it goes back to the pool", l.Addr, l.Pool, keptText(l))
			continue
		}
		v.say.note("%s stays: %s has it", l.Addr, l.Where())
	}
	if len(kept) == 0 {
		v.say.note("claim %s keeps no address that could go back", name)
	}
	return kept
}
