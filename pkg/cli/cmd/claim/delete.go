package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

type claimDelete struct {
	*app.App
	in      resource.InNamespace
	args    []string
	yes     bool
	wait    bool
	timeout time.Duration
}

func newDelete(s *app.App) *cobra.Command {
	v := &claimDelete{App: s}
	cmd := &cobra.Command{
		Use: "delete NAME...", Aliases: []string{"rm"}, Args: app.Takes(1, 0), RunE: app.Runs(v),
		Short: "Delete claims",
		Long: `Delete claims, after a question. Addresses that a claim keeps and no pod has
return to their pools. Addresses that pods have stay with them. The claim is
deleted when the last of these pods ends, at the earliest after 16 seconds:
requests that began before may need it. The command waits for that. Interrupting it does
not bring the claim back.`,
		Example: `  bcsnetctl claim delete web -n shop
  bcsnetctl claim delete shop/web shop/db --yes --wait=false`,
		ValidArgsFunction: resource.CompleteClaims(s, &v.in, 0),
	}
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&v.wait, "wait", true, "wait until the claims are gone")
	cmd.Flags().DurationVar(&v.timeout, "timeout", 5*time.Minute, "how long to wait; 0 is for ever")
	v.in.AddTo(s, cmd, "the `NAMESPACE` of the claims")
	s.DryRun.AddTo(cmd)
	return cmd
}

func (v *claimDelete) Complete(args []string) error {
	v.args = args
	return v.in.Complete(v.App)
}

func (v *claimDelete) Validate() error {
	if v.timeout < 0 {
		return app.Usagef("--timeout %s is negative", v.timeout)
	}
	return nil
}

func (v *claimDelete) Run(ctx context.Context) error {
	keys, err := v.in.Keys(v.args)
	if err != nil {
		return err
	}
	api, err := resource.NewClaims(v.App)
	if err != nil {
		return err
	}
	all, err := api.Named(ctx, keys)
	if err != nil {
		return err // nothing was deleted: one wrong name stops the command
	}
	var names []string
	waits := map[types.UID]int{}
	for _, c := range all {
		names = append(names, c.FullName())
		waits[c.UID] = v.radius(ctx, c)
	}
	if err := v.Confirm(ctx, v.yes, fmt.Sprintf("Delete %s?", app.Those("claim", names))); err != nil {
		return err
	}
	return v.deleteAll(ctx, api, all, waits)
}

// radius announces the effect on a claim's addresses, and returns the number of addresses in use, which delay the
// deletion.
func (v *claimDelete) radius(ctx context.Context, c resource.Claim) (waits int) {
	what := "no addresses"
	leases, err := resource.LeasesOfClaim(ctx, v.App, c.FullName())
	way := resource.SortOut(leases)
	switch {
	case err != nil:
		what = "it is unknown what it has: " + err.Error()
	case len(leases) > 0:
		used, kept := view.ClaimUses(leases)
		what = fmt.Sprintf("%d kept %s to the pool, %d in use %s with the pods until they end", kept,
			humanize.OneOr(kept, "returns", "return"), used, humanize.OneOr(used, "stays", "stay"))
	}
	if c.DeletionTimestamp != nil {
		what += "; it is being deleted already"
	}
	v.Say.Start("claim %s (%s): %s", c.FullName(), resource.OwnerText(c.BCSNetIPClaim), what)
	if len(way.InUse) > 0 {
		v.Say.Note("  in use by %s", way.Holders())
	}
	if c.Labels[claim.Managed] == "true" {
		v.Say.Warn(
			"claim %s was created from annotations: it is created again while pods have its addresses, and by the "+
				"next pod of its workload", c.FullName())
	}
	return len(way.InUse)
}

func (v *claimDelete) deleteAll(
	ctx context.Context, api *resource.Claims, all []resource.Claim, waits map[types.UID]int,
) error {
	var failed app.Several
	var left []resource.Claim
	for _, c := range all {
		err := v.deleteOne(ctx, api, c)
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("claim %s was not deleted: %w", c.FullName(), err))
		case v.DryRun != app.DryRunNone && waits[c.UID] > 0:
			v.Say.Done("claim %s would take no more addresses, and would be deleted once %s %s released", c.FullName(),
				humanize.Plural(waits[c.UID], "address"), humanize.OneOr(waits[c.UID], "is", "are"))
		case v.DryRun != app.DryRunNone:
			v.Say.Done("claim %s deleted", c.FullName())
		case !v.wait:
			v.Say.Done("deletion of claim %s requested", c.FullName())
		default:
			left = append(left, c)
		}
	}
	limit := follow.Remaining(v.App, v.timeout)
	for _, c := range left {
		if err := v.waitGone(ctx, api, c, limit()); err != nil {
			failed = append(failed, err)
		}
	}
	return failed.OrNil()
}

// deleteOne deletes the claim that was shown, not a new one of the same name.
func (v *claimDelete) deleteOne(ctx context.Context, api *resource.Claims, c resource.Claim) error {
	if v.DryRun == app.DryRunClient {
		return nil
	}
	return resource.Delete(ctx, v.App, api.API.Namespace(c.Namespace), c.Name, c.UID)
}

// waitGone waits until a claim is gone, and prints what it waits for.
func (v *claimDelete) waitGone(
	ctx context.Context, api *resource.Claims, gone resource.Claim, limit time.Duration,
) error {
	what, err := follow.UntilClaimGone(ctx, api, gone, limit)
	switch {
	case err == nil:
		v.Say.Done("claim %s deleted", gone.FullName())
		return nil
	case errors.Is(err, follow.ErrTooLong):
		f := &app.Failure{
			Code: app.ExitTimeout, Message: fmt.Sprintf("claim %s is not gone after %s: %s", gone.FullName(), v.timeout,
				what),
			Cause: err,
		}
		if what == follow.WaitsForController {
			return f.WithHint(resource.HintController)
		}
		return f.WithHint("it goes without this command; see bcsnetctl claim describe %s", gone.FullName())
	case ctx.Err() != nil:
		return &app.Failure{Message: fmt.Sprintf("claim %s is still being deleted, and goes without this command: %s",
			gone.FullName(), what)}
	default:
		return err
	}
}
