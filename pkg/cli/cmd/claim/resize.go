package claim

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// unbounded is the word for "no bound" on the command line.
const unbounded = "any"

type claimResize struct {
	*app.App
	output    printer.Output
	in        resource.InNamespace
	arg, size string
	replicas  *int32
	surge     int32
	setSurge  bool
	cmd       *cobra.Command
}

func newResize(s *app.App) *cobra.Command {
	v := &claimResize{App: s}
	v.cmd = &cobra.Command{
		Use: "resize NAME N", Aliases: []string{"scale"}, Args: app.Takes(2, 2), RunE: app.Runs(v),
		Short: "Set how many addresses a claim may have",
		Long: `Set how many addresses of a family a claim may have; any means as many as its
pods need. A larger claim may take more at once. A smaller one releases the kept
addresses beyond its size, the longest unused first; addresses of pods stay with
them until they end.`,
		Example: `  bcsnetctl claim resize web 5 -n shop
  bcsnetctl claim resize shop/web any --dry-run=server`,
		ValidArgsFunction: app.First(resource.CompleteClaims(s, &v.in)),
	}
	v.cmd.Flags().Int32Var(&v.surge, "surge", 0,
		"how many more temporarily, as in a rolling update; without it, as before")
	app.Complete(v.cmd, "surge")
	v.in.AddTo(s, v.cmd, "the `NAMESPACE` of the claim")
	s.DryRun.AddTo(v.cmd)
	v.output.AddToChange(v.cmd)
	return v.cmd
}

func (v *claimResize) Complete(args []string) error {
	v.arg, v.size, v.setSurge = args[0], args[1], v.cmd.Flags().Changed("surge")
	return v.in.Complete(v.App)
}

func (v *claimResize) Validate() error {
	if v.size != unbounded {
		n, err := strconv.Atoi(v.size)
		if err != nil {
			return app.Usagef("%q is neither a number of addresses nor %s", v.size, unbounded)
		}
		if err := checkReplicas("the size", n); err != nil {
			return err
		}
		v.replicas = new(int32(n)) //nolint:gosec // checkReplicas bounds it
	}
	if err := checkReplicas("--surge", int(v.surge)); err != nil {
		return err
	}
	return v.output.Validate()
}

func (v *claimResize) Run(ctx context.Context) error {
	api, c, err := resource.ClaimNamed(ctx, v.App, &v.in, v.arg)
	switch {
	case err != nil:
		return err
	case c.DeletionTimestamp != nil:
		return app.Refuse(ipam.ReasonClaimConflict, "claim %s is being deleted and takes no changes", c.FullName()).
			WithHint("see what it waits for: bcsnetctl claim describe %s", c.FullName())
	case c.Labels[claim.Managed] == "true":
		return resource.ManagedClaim(c)
	}
	leases, err := resource.LeasesOfClaim(ctx, v.App, c.FullName())
	if err != nil {
		return err
	}
	before := resource.SizeText(c.BCSNetIPClaim)
	c.Spec.Replicas = v.replicas
	if v.setSurge {
		c.Spec.Surge = v.surge
	}
	v.effect(leases)
	stored, err := v.patch(ctx, api, c)
	if err != nil {
		return err
	}
	v.Say.Done("claim %s may have %s; before: %s", c.FullName(), resource.SizeText(c.BCSNetIPClaim), before)
	return v.output.Object(v.Out, stored)
}

// effect announces the effect of the new size on the claim's addresses.
func (v *claimResize) effect(leases []lease.Lease) {
	if v.replicas == nil {
		return
	}
	families := map[ipaddr.Family][]lease.Lease{}
	for _, l := range leases {
		f := ipaddr.FamilyOf(l.Addr)
		families[f] = append(families[f], l)
	}
	for _, f := range ipaddr.Families() {
		used, kept := view.ClaimUses(families[f])
		over := used + kept - int(*v.replicas)
		if over <= 0 {
			continue
		}
		back := min(over, kept)
		var parts string
		if back > 0 {
			parts = fmt.Sprintf("%d of %d kept addresses %s to the pool", back, kept,
				humanize.OneOr(back, "returns", "return"))
		}
		if stay := over - back; stay > 0 {
			if parts != "" {
				parts += "; "
			}
			parts += fmt.Sprintf("%d above the new size %s in use and %s until the pods end", stay,
				humanize.OneOr(stay, "is", "are"), humanize.OneOr(stay, "stays", "stay"))
		}
		v.Say.Start("%s: %s", f, parts)
	}
}

// patch changes only the size, so that it does not conflict with changes of other fields.
func (v *claimResize) patch(
	ctx context.Context, api *resource.Claims, c resource.Claim,
) (*unstructured.Unstructured, error) {
	spec := map[string]any{"replicas": nil}
	if v.replicas != nil {
		spec["replicas"] = int64(*v.replicas)
	}
	if v.setSurge {
		spec["surge"] = int64(v.surge)
	}
	if v.DryRun == app.DryRunClient {
		next := c.Stored.DeepCopy()
		for field, value := range spec {
			if value == nil {
				unstructured.RemoveNestedField(next.Object, "spec", field)
			} else if err := unstructured.SetNestedField(next.Object, value, "spec", field); err != nil {
				return nil, err
			}
		}
		return next, nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": c.UID}, "spec": spec})
	if err != nil {
		return nil, err
	}
	stored, err := api.API.Namespace(c.Namespace).Patch(ctx, c.Name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: app.ProgramName, DryRun: v.DryRun.Options()})
	return stored, resource.Explain(v.App, err)
}
