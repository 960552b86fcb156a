package claim

import (
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Validate makes the spec from the arguments and flags.
func (v *claimCreate) Validate() error {
	key, err := v.in.Key(v.name)
	if err != nil || len(validation.NameIsDNSSubdomain(key.Name, false)) > 0 {
		return app.Usagef("%q is not a name for a claim", v.name).
			WithHint("a name is lower-case letters, digits, - and ., with a letter or digit at both ends")
	}
	v.object.Namespace, v.object.Name = key.Namespace, key.Name
	spec := &v.object.Spec
	v.addresses, spec.Addresses = spec.Addresses, resource.AddressWords(spec.Addresses)
	if _, err := resource.ParseEntries(spec.Addresses); err != nil {
		return err
	}
	if err := v.setSize(); err != nil {
		return err
	}
	if err := v.setPolicy(); err != nil {
		return err
	}
	switch {
	case spec.Preallocate && spec.Replicas == nil && len(spec.Addresses) == 0:
		return app.Usagef("--preallocate takes as many addresses as --replicas says, or all of --address: give one " +
			"of them")
	case spec.Preallocate && spec.ReleasePolicy != v1.ReleaseImmutable && spec.ReleasePolicy != v1.ReleaseNever:
		return app.Usagef(
			"--preallocate goes with --release-policy Immutable or Never, not with %s: that releases what is not in "+
				"use",
			spec.ReleasePolicy)
	}
	if v.owner != "" {
		kind, name, both := strings.Cut(v.owner, "/")
		if !both || kind == "" || len(validation.NameIsDNSSubdomain(name, false)) > 0 {
			return app.Usagef("--owner %q is not KIND/NAME, such as Deployment/web", v.owner)
		}
		v.ownerResource, spec.Owner = kind, &v1.ClaimOwner{Name: name}
	}
	if spec.Owner != nil && spec.SharedName != "" {
		return app.Usagef("--owner and --shared-name do not go together: a shared pool belongs to no workload")
	}
	if want := workload.SharedClaim(spec.SharedName); spec.SharedName != "" && v.object.Name != want {
		return app.Usagef("the claim of the shared pool %q is named %s: pods find it by that", spec.SharedName, want).
			WithHint("bcsnetctl claim create %s -n %s --shared-name %q", want, resource.SystemNamespace,
				spec.SharedName)
	}
	return v.output.Validate()
}

// maxReplicas is the maximum of addresses of a family, as in the schema.
const maxReplicas = 65536

func checkReplicas(flag string, n int) error {
	if n < 0 || n > maxReplicas {
		return app.Usagef("%s %d is not between 0 and %d", flag, n, maxReplicas)
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
		return app.Usagef("--surge goes with --replicas")
	case v.replicas == -1:
		return nil
	}
	spec.Replicas = new(int32(min(v.replicas, math.MaxInt32)))
	return checkReplicas("--replicas", v.replicas)
}

func (v *claimCreate) setPolicy() error {
	spec := &v.object.Spec
	i := slices.IndexFunc(releasePolicies(), func(p string) bool {
		return strings.EqualFold(p, strings.ReplaceAll(v.policy, "-", ""))
	})
	switch {
	case i >= 0:
		spec.ReleasePolicy = v1.ReleasePolicy(releasePolicies()[i])
	case v.policy != "":
		return app.Usagef("--release-policy %q is not one of %s", v.policy, strings.Join(releasePolicies(), ", "))
	case v.keep != 0:
		spec.ReleasePolicy = v1.ReleaseTimed
	default:
		spec.ReleasePolicy = v1.ReleaseImmutable
	}
	switch timed := spec.ReleasePolicy == v1.ReleaseTimed; {
	case timed != (v.keep != 0):
		return app.Usagef("--keep goes with --release-policy Timed: give both, or only --keep")
	case timed && (v.keep < 0 || v.keep > v1.MaxKeep || v.keep%time.Second != 0):
		return app.Usagef("--keep %s is not a number of whole seconds up to %s", v.keep, explain.FormatSpan(v1.MaxKeep))
	case timed:
		spec.Keep = &metav1.Duration{Duration: v.keep}
	}
	return nil
}

// findKind resolves the kind of the typed owner as kubectl does.
func (v *claimCreate) findKind() error {
	kind, err := kindNamed(v.App, v.ownerResource)
	if err != nil {
		return err
	}
	v.object.Spec.Owner.APIVersion, v.object.Spec.Owner.Kind = kind.GroupVersion().String(), kind.Kind
	return nil
}

// kindNamed returns the kind that the API server knows by a word: a kind, resource or short name, with or without its
// group.
func kindNamed(s *app.App, word string) (schema.GroupVersionKind, error) {
	cfg, err := s.Connect()
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return schema.GroupVersionKind{}, s.ConfigProblem(err)
	}
	cached := memory.NewMemCacheClient(d)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, func(string) {})
	full, group := schema.ParseResourceArg(strings.ToLower(word))
	if full != nil {
		if kind, err := mapper.KindFor(*full); err == nil {
			return kind, nil
		}
	}
	kind, err := mapper.KindFor(group.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return kind, app.Refuse(app.ReasonKindNotFound, "the API server knows no kind %s", word).
			WithHint("see what it knows: kubectl api-resources")
	}
	return kind, resource.Explain(s, err)
}
