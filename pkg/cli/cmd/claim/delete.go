package claim

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

type claimDelete struct {
	*app.App
	deletion follow.Deletion
	in       resource.InNamespace
	args     []string
}

func newDelete(s *app.App) *cobra.Command {
	v := &claimDelete{App: s}
	cmd := &cobra.Command{
		Use: "delete NAME...", Aliases: []string{"rm"}, Args: app.Takes(1, 0), RunE: app.Runs(v),
		Short: "Delete claims",
		Long: `Delete claims, after a question. Addresses that a claim keeps and no pod has
return to their pools. Addresses that pods have stay with them. The claim is
deleted when the last of these pods ends, at the earliest after 16 seconds:
requests that began before may need it. The command waits for that.
Interrupting it does not bring the claim back.`,
		Example: `  bcsnetctl claim delete web -n shop
  bcsnetctl claim delete shop/web shop/db --yes --wait=false`,
		ValidArgsFunction: resource.CompleteClaims(s, &v.in),
	}
	v.deletion.AddTo(s, cmd, "claims")
	v.in.AddTo(s, cmd, "the `NAMESPACE` of the claims")
	return cmd
}

func (v *claimDelete) Complete(args []string) error {
	v.args = args
	return v.in.Complete(v.App)
}

func (v *claimDelete) Validate() error { return v.deletion.Validate() }

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
	return v.deletion.Run(ctx, v.App, app.Map(all, func(c resource.Claim) follow.Doomed {
		return follow.Doomed{
			Noun: "claim", Name: c.FullName(), Stops: "take no more addresses", Waits: v.radius(ctx, c),
			Delete: func(ctx context.Context) error {
				return resource.Delete(ctx, v.App, api.API.Namespace(c.Namespace), c.Name, c.UID)
			},
			UntilGone: func(ctx context.Context, limit time.Duration) (string, error) {
				return follow.UntilClaimGone(ctx, api, c, limit)
			},
		}
	}))
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
