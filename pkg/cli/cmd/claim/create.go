package claim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

type claimCreate struct {
	*app.App
	output        printer.Output
	in            resource.InNamespace
	name, owner   string
	policy        string
	replicas      int
	keep          time.Duration
	object        v1.BCSNetIPClaim
	ownerResource string
	// addresses are the values of --address.
	addresses []string
}

func newCreate(s *app.App) *cobra.Command {
	v := &claimCreate{App: s}
	spec := &v.object.Spec
	cmd := &cobra.Command{
		Use: "create NAME", Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Create a claim",
		Long: `Create a claim: addresses that are kept for the workload of --owner, whose
pods use it without being told, or for all pods that name it by the annotation
` + workload.ClaimAnnotation + `. It has no address until a pod
that uses it gets one; with --preallocate it takes them before. Annotations
create claims, too. A claim that you create may have a limit, and exists before
its first pod.

The kind of --owner is written as kubectl writes it: Deployment/web, sts/db, or
CloneSet.apps.kruise.io/web if several groups have it. It is the topmost one:
the Deployment, not its ReplicaSet; the CronJob, not its Jobs.`,
		Example: `  bcsnetctl claim create web -n shop --owner Deployment/web --replicas 3 --surge 1
  bcsnetctl claim create db --owner StatefulSet/db --release-policy Timed --keep 48h --pool blue
  bcsnetctl claim create partners --replicas 4 --pool blue --release-policy Never --preallocate
  bcsnetctl claim create vip --address 10.0.0.20-10.0.0.23 --release-policy Never --dry-run=server -o yaml`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringVar(
		&v.owner, "owner",
		"", "the workload whose pods use it, and no others, as `KIND/NAME`; scaling it down frees addresses of an "+
			"Immutable claim")
	f.IntVar(&v.replicas, "replicas", -1, "the most addresses of a family; -1 is as many as its pods need")
	f.BoolVar(&spec.Preallocate, "preallocate", false,
		"take the addresses now, before any pod asks: as many as --replicas, or all of --address")
	f.Int32Var(&spec.Surge, "surge", 0, "how many more than --replicas temporarily, as in a rolling update")
	f.StringSliceVar(&spec.Addresses, "address", nil, "only these `ADDRESSES`: a-b, a CIDR or a single one; repeatable")
	f.StringVar(&spec.Pool, "pool", "", "only addresses of this `POOL`; of several, a,b, the first with a free one")
	f.StringVar(&v.policy, "release-policy", "", "`WHEN` addresses return to their pool: "+
		strings.Join(releasePolicies(), ", ")+"; without it, Immutable, or Timed with --keep")
	f.DurationVar(&v.keep, "keep", 0, "how long an address is kept after its pod ended, with Timed")
	f.StringVar(&spec.SharedName, "shared-name", "", "the `NAME` by which pods use it as a shared pool")
	f.StringSliceVar(&spec.Namespaces, "namespaces", nil, "`NAMESPACES` whose pods may use it, too; * is all")
	v.in.AddTo(s, cmd, "the `NAMESPACE` of the claim")
	s.DryRun.AddTo(cmd)
	v.output.AddToChange(cmd)
	app.Complete(cmd, "release-policy", releasePolicies()...)
	app.CompleteWith(cmd, "pool", resource.CompletePools(s))
	app.CompleteWith(cmd, "namespaces", resource.CompleteNamespaces(s))
	for _, name := range []string{"owner", "replicas", "surge", "address", "keep", "shared-name"} {
		app.Complete(cmd, name)
	}
	return cmd
}

func releasePolicies() []string {
	return []string{
		string(v1.ReleaseWithPod), string(v1.ReleaseImmutable), string(v1.ReleaseNever), string(v1.ReleaseTimed),
	}
}

func (v *claimCreate) Complete(args []string) error {
	v.name = args[0]
	return v.in.Complete(v.App)
}

func (v *claimCreate) Run(ctx context.Context) error {
	if err := resource.FitLengths(ctx, v.App, v.addresses); err != nil {
		return err
	}
	spec := &v.object.Spec
	if spec.Owner != nil {
		if err := v.findKind(); err != nil {
			return err
		}
	}
	if named := spec.PoolNames(); len(named) > 0 {
		api, err := resource.NewPools(v.App)
		if err != nil {
			return err
		}
		for _, name := range named {
			if _, err := api.Get(ctx, name); err != nil {
				return err
			}
		}
		spec.Pool = strings.Join(named, ",")
	}
	api, err := resource.NewClaims(v.App)
	if err != nil {
		return err
	}
	v.lookAtOwner(ctx, api)
	created, err := v.create(ctx, api)
	if err != nil {
		return err
	}
	v.Say.Done("claim %s/%s created: %s, for %s", v.object.Namespace, v.object.Name, resource.SizeText(&v.object),
		resource.OwnerText(&v.object))
	if spec.SharedName != "" && v.object.Namespace != resource.SystemNamespace {
		v.Say.Warn("pods of namespace %s use it, unless the controller has --shared-pools-for-all: then they look in "+
			"%s", v.object.Namespace, resource.SystemNamespace)
	}
	if spec.SharedName == "" && spec.Owner == nil {
		v.Hint("have pods use it: annotation %s: %s on them, their workload or its template", workload.ClaimAnnotation,
			v.object.Name)
	}
	return v.output.Object(v.Out, created)
}

// lookAtOwner warns if the workload's pods will not use the claim.
func (v *claimCreate) lookAtOwner(ctx context.Context, api *resource.Claims) {
	c, err := claim.FromObject(&v.object)
	if err != nil || c.Workload.Kind == "" {
		return // the API server reports the error
	}
	if err := v.warnOfOwner(ctx, c.Workload); err != nil {
		v.Say.Warn("%s cannot be read, so it is not known whether it exists or belongs to another workload: %v",
			c.Workload, err)
	}
	others, err := api.MadeFor(ctx, c.Workload)
	if err != nil {
		v.Say.Warn("the claims of the namespace cannot be listed, so another one for %s would not show: %v", c.Workload,
			err)
	}
	if others = slices.DeleteFunc(others, func(name string) bool { return name == v.object.Name }); len(others) > 0 {
		v.Say.Warn("%s %s for %s, too: its pods are refused until an annotation names the claim that they are to "+
			"use, or only one is left", humanize.List(others), humanize.OneOr(len(others), "is", "are"), c.Workload)
	}
}

// warnOfOwner warns if the owner does not exist or belongs to another workload.
func (v *claimCreate) warnOfOwner(ctx context.Context, w workload.Workload) error {
	r, err := resource.NewResolver(v.App)
	if err != nil {
		return err
	}
	if missing, err := r.Owners.Missing(ctx, w); err != nil || missing {
		if missing {
			v.Say.Warn("there is no %s: no pod uses the claim until there is", w)
		}
		return err
	}
	above, ok, err := r.Owners.Above(ctx, w)
	if ok {
		kind := above.Kind
		if !slices.Contains([]string{"", "apps", "batch"}, above.Group) {
			kind += "." + above.Group
		}
		v.Say.Warn("%s belongs to %s, and its pods use the claims of that, not this one: --owner %s/%s", w, above, kind,
			above.Name)
	}
	return err
}

func (v *claimCreate) create(ctx context.Context, api *resource.Claims) (*unstructured.Unstructured, error) {
	in := api.API.Namespace(v.object.Namespace)
	created, err := resource.CreateOurs(ctx, v.App, in, resource.ClaimKind, &v.object)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, app.Refuse(app.ReasonClaimExists, "there is a claim %s/%s already", v.object.Namespace,
			v.object.Name).
			WithHint("see it: bcsnetctl claim describe %s/%s", v.object.Namespace, v.object.Name)
	case apierrors.IsNotFound(err) && !resource.NoSuchResource(err):
		return nil, app.Refuse(app.ReasonNamespaceNotFound, "there is no namespace %s", v.object.Namespace).
			WithHint("see all: kubectl get namespaces")
	}
	return created, resource.Explain(v.App, err)
}
