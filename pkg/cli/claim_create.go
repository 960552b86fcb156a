package cli

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

type claimCreate struct {
	*session
	output        output
	in            inNamespace
	name, owner   string
	policy        string
	replicas      int
	keep          time.Duration
	object        v1.BCSNetIPClaim
	ownerResource string
}

func newClaimCreate(s *session) *cobra.Command {
	v := &claimCreate{session: s}
	spec := &v.object.Spec
	cmd := &cobra.Command{
		Use: "create NAME", Args: takes(1, 1), RunE: runs(v),
		Short: "Create a claim",
		Long: `Create a claim: addresses that are kept for a workload, or for all pods that
name it by the annotation
` + workload.ClaimAnnotation + `. It has no address until a pod
that uses it gets one. Annotations alone make claims, too; one that is made by
hand may have a bound, and is there before the first pod is.

The kind of --owner is written as kubectl writes it: Deployment/web, sts/db, or
CloneSet.apps.kruise.io/web where several groups have it.`,
		Example: `  bcsnetctl claim create web -n shop --owner Deployment/web --replicas 3 --surge 1
  bcsnetctl claim create db --owner StatefulSet/db --release-policy Timed --keep 48h --pool blue
  bcsnetctl claim create vip --address 10.0.0.20-10.0.0.23 --release-policy Never --dry-run=server -o yaml`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringVar(&v.owner, "owner", "", "the workload whose pods use it, as `KIND/NAME`; without it, pods name the claim")
	f.IntVar(&v.replicas, "replicas", -1, "the most addresses of a family; -1 is as many as its pods need")
	f.Int32Var(&spec.Surge, "surge", 0, "how many more than --replicas for a while, as in a rolling update")
	f.StringSliceVar(&spec.Addresses, "address", nil, "only these `ADDRESSES`: a-b, a CIDR or a single one; repeatable")
	f.StringVar(&spec.Pool, "pool", "", "only addresses of this `POOL`")
	f.StringVar(&v.policy, "release-policy", "", "`WHEN` addresses go back to their pool: "+strings.Join(releasePolicies(), ", ")+"; without it, Immutable, or Timed with --keep")
	f.DurationVar(&v.keep, "keep", 0, "how long an address is kept after its pod ended, with Timed")
	f.StringVar(&spec.SharedName, "shared-name", "", "the `NAME` by which pods use it as a shared pool")
	f.StringSliceVar(&spec.Namespaces, "namespaces", nil, "`NAMESPACES` whose pods may use it, too; * is all")
	v.in.addTo(s, cmd, "the `NAMESPACE` of the claim")
	s.dry.addTo(cmd)
	v.output.addToChange(cmd)
	complete(cmd, "release-policy", releasePolicies()...)
	completeWith(cmd, "pool", s.completePools)
	completeWith(cmd, "namespaces", s.completeNamespaces)
	for _, name := range []string{"owner", "replicas", "surge", "address", "keep", "shared-name"} {
		complete(cmd, name)
	}
	return cmd
}

func releasePolicies() []string {
	return []string{string(v1.ReleaseWithPod), string(v1.ReleaseImmutable), string(v1.ReleaseNever), string(v1.ReleaseTimed)}
}

func (v *claimCreate) Complete(args []string) error {
	v.name = args[0]
	return v.in.complete(v.session)
}

func (v *claimCreate) Validate() error {
	key, err := v.in.key(v.name)
	if err != nil || len(validation.NameIsDNSSubdomain(key.Name, false)) > 0 {
		return usagef("%q is no name for a claim", v.name).
			withHint("a name is lower-case letters, digits, - and ., with a letter or digit at both ends")
	}
	v.object.Namespace, v.object.Name = key.Namespace, key.Name
	spec := &v.object.Spec
	if _, err := parseEntries(spec.Addresses); err != nil {
		return err
	}
	if err := v.setSize(); err != nil {
		return err
	}
	if err := v.setPolicy(); err != nil {
		return err
	}
	if v.owner != "" {
		kind, name, both := strings.Cut(v.owner, "/")
		if !both || kind == "" || len(validation.NameIsDNSSubdomain(name, false)) > 0 {
			return usagef("--owner %q is not KIND/NAME, such as Deployment/web", v.owner)
		}
		v.ownerResource, spec.Owner = kind, &v1.ClaimOwner{Name: name}
	}
	if spec.Owner != nil && spec.SharedName != "" {
		return usagef("--owner and --shared-name do not go together: a shared pool belongs to no workload")
	}
	if want := workload.SharedClaim(spec.SharedName); spec.SharedName != "" && v.object.Name != want {
		return usagef("the claim of the shared pool %q is named %s: pods find it by that", spec.SharedName, want).
			withHint("bcsnetctl claim create %s -n %s --shared-name %q", want, systemNamespace, spec.SharedName)
	}
	return v.output.validate()
}

// maxReplicas is the most addresses of a family; the schema has the same bound.
const maxReplicas = 65536

func checkReplicas(flag string, n int) error {
	if n < 0 || n > maxReplicas {
		return usagef("%s %d is not between 0 and %d", flag, n, maxReplicas)
	}
	return nil
}

func (v *claimCreate) setSize() error {
	spec := &v.object.Spec
	if err := checkReplicas("--surge", int(spec.Surge)); err != nil {
		return err
	}
	switch {
	case v.replicas == -1 && spec.Surge > 0:
		return usagef("--surge goes with --replicas")
	case v.replicas == -1:
		return nil
	}
	spec.Replicas = new(int32(min(v.replicas, math.MaxInt32)))
	return checkReplicas("--replicas", v.replicas)
}

func (v *claimCreate) setPolicy() error {
	spec := &v.object.Spec
	i := slices.IndexFunc(releasePolicies(), func(p string) bool { return strings.EqualFold(p, v.policy) })
	switch {
	case i >= 0:
		spec.ReleasePolicy = v1.ReleasePolicy(releasePolicies()[i])
	case v.policy != "":
		return usagef("--release-policy %q is not one of %s", v.policy, strings.Join(releasePolicies(), ", "))
	case v.keep != 0:
		spec.ReleasePolicy = v1.ReleaseTimed
	default:
		spec.ReleasePolicy = v1.ReleaseImmutable
	}
	switch timed := spec.ReleasePolicy == v1.ReleaseTimed; {
	case timed != (v.keep != 0):
		return usagef("--keep goes with --release-policy Timed: give both, or --keep alone")
	case timed && (v.keep < 0 || v.keep > v1.MaxKeep || v.keep%time.Second != 0):
		return usagef("--keep %s is not a number of whole seconds up to %s", v.keep, ipam.FormatSpan(v1.MaxKeep))
	case timed:
		spec.Keep = &metav1.Duration{Duration: v.keep}
	}
	return nil
}

func (v *claimCreate) Run(ctx context.Context) error {
	spec := &v.object.Spec
	if spec.Owner != nil {
		if err := v.findKind(); err != nil {
			return err
		}
	}
	if spec.Pool != "" {
		api, err := v.pools()
		if err != nil {
			return err
		}
		if _, err := api.get(ctx, spec.Pool); err != nil {
			return err
		}
	}
	api, err := v.claims()
	if err != nil {
		return err
	}
	created, err := v.create(ctx, api)
	if err != nil {
		return err
	}
	v.say.done("claim %s/%s created: %s, for %s", v.object.Namespace, v.object.Name, sizeText(&v.object), ownerText(&v.object))
	if spec.SharedName == "" {
		v.hint("have pods use it: annotation %s: %s on them, their workload or its template", workload.ClaimAnnotation, v.object.Name)
	}
	return v.output.object(v.Out, created)
}

func (v *claimCreate) create(ctx context.Context, api *claims) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v.object)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(o.Object, "status")
	o.SetGroupVersionKind(v1.GroupVersion.WithKind(claimKind))
	if v.dry == dryRunClient {
		return o, nil
	}
	created, err := api.api.Namespace(v.object.Namespace).Create(ctx, o, metav1.CreateOptions{FieldManager: programName, DryRun: v.dry.options()})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, refuse(reasonClaimExists, "there is a claim %s/%s already", v.object.Namespace, v.object.Name).
			withHint("see it: bcsnetctl claim describe %s/%s", v.object.Namespace, v.object.Name)
	case apierrors.IsNotFound(err) && !noSuchResource(err):
		return nil, refuse(reasonNamespaceNotFound, "there is no namespace %s", v.object.Namespace).withHint("see all: kubectl get namespaces")
	}
	return created, v.explain(err)
}
