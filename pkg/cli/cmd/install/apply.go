package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/doctor"
)

// step is one object to install.
type step struct {
	api  dynamic.ResourceInterface
	want unstructured.Unstructured
	// have is the object in the cluster; nil if there is none.
	have *unstructured.Unstructured
	// tried means that the API server was asked what would change; changes is its answer.
	tried   bool
	changes []string
}

// stepFor looks an object up.
func stepFor(ctx context.Context, s *app.App, c dynamic.Interface, want unstructured.Unstructured) (step, error) {
	kind, _ := meta.UnsafeGuessKindToResource(want.GroupVersionKind()) // correct for the kinds in the manifests
	one := step{api: c.Resource(kind), want: want}
	if ns := want.GetNamespace(); ns != "" {
		one.api = c.Resource(kind).Namespace(ns)
	}
	have, err := one.api.Get(ctx, want.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return one, nil
	case err != nil:
		return one, needAdministrator(s, err)
	}
	one.have = have
	return one, nil
}

// needAdministrator explains an error of a request that needs an administrator.
func needAdministrator(s *app.App, err error) error {
	err = resource.Explain(s, err)
	if f, ok := errors.AsType[*app.Failure](err); ok && f.Hint == app.HintRights {
		f.Hint = "this needs an administrator of the cluster; who you are: kubectl auth whoami"
	}
	return err
}

// stepsFor looks at what is there.
func (v *install) stepsFor(ctx context.Context, c dynamic.Interface, all []unstructured.Unstructured) ([]step, error) {
	var steps []step
	for _, want := range all {
		one, err := stepFor(ctx, v.App, c, want)
		if err != nil {
			return nil, err
		}
		if want.GetKind() == resource.KindDeployment {
			if err := v.keep(one); err != nil {
				return nil, err
			}
		}
		if err := v.keepNode(one); err != nil {
			return nil, err
		}
		steps = append(steps, one)
	}
	return steps, nil
}

// keep copies the settings of users from the existing Deployment: replicas, image and certificate.
func (v *install) keep(d step) error {
	switch {
	case d.have == nil && v.upgrade:
		return nothingToUpgrade(v.App)
	case d.have == nil && v.image == "":
		return app.Usagef("--image is missing: there is no controller in the cluster yet whose image could stay").
			WithHint("name the image that you built: bcsnetctl install --image REGISTRY/bcsnet-controller:TAG")
	case d.have == nil:
		return nil
	}
	if n, found, err := unstructured.NestedInt64(d.have.Object, "spec", "replicas"); found && err == nil {
		if err := unstructured.SetNestedField(d.want.Object, n, "spec", "replicas"); err != nil {
			return err
		}
	}
	if err := keepArguments(d, "--tls-cert-file", "--tls-private-key-file"); err != nil || v.image != "" {
		return err
	}
	return resource.SetImage(d.want, resource.Image(*d.have))
}

// applyAll applies the objects in order. After each definition it waits until the API server serves it.
func (v *install) applyAll(ctx context.Context, steps []step) ([]unstructured.Unstructured, error) {
	missing := map[string]bool{} // namespaces that a dry run does not create
	var applied []unstructured.Unstructured
	for _, one := range steps {
		if one.want.GetKind() == resource.KindNamespace && one.have == nil {
			missing[one.want.GetName()] = v.DryRun != app.DryRunNone
		}
		stored, err := v.apply(ctx, one, missing[one.want.GetNamespace()])
		if err != nil {
			f := &app.Failure{Message: fmt.Sprintf("%s was not applied, nor what comes after it: %v",
				resource.Title(one.want), err), Cause: err}
			if inner, ok := errors.AsType[*app.Failure](err); ok {
				f.Reason, f.Hint = inner.Reason, inner.Hint
			}
			return applied, f
		}
		applied = append(applied, *stored)
		outcome := v.outcome(one.have, stored)
		v.plan.applied(one, outcome)
		v.Say.Done("%s %s", resource.Title(one.want), outcome)
		if one.want.GetKind() == resource.KindCRD && v.DryRun == app.DryRunNone {
			if err := v.established(ctx, one); err != nil {
				return applied, err
			}
		}
	}
	return applied, nil
}

// apply applies one object. nowhere means that its namespace does not exist in a dry run; then it sends nothing.
func (v *install) apply(ctx context.Context, one step, nowhere bool) (*unstructured.Unstructured, error) {
	if v.DryRun == app.DryRunClient || nowhere {
		return &one.want, nil
	}
	stored, err := one.api.Apply(ctx, one.want.GetName(), &one.want,
		metav1.ApplyOptions{FieldManager: app.ProgramName, Force: true, DryRun: v.DryRun.Options()})
	return stored, needAdministrator(v.App, err)
}

// outcome returns the word for the result of an apply.
func (v *install) outcome(before, after *unstructured.Unstructured) string {
	switch {
	case before == nil:
		return "created"
	case v.DryRun == app.DryRunClient:
		return "applied"
	case sameObject(before, after):
		return "unchanged"
	default:
		return "configured"
	}
}

// keepArguments replaces the arguments for some flags by those of the existing object. The flags have values, after =
// or as the next argument. If the object has none of the flags, nothing changes.
func keepArguments(s step, flags ...string) error {
	isOne := func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains(flags, name)
	}
	var kept []string
	args := resource.ContainerArguments(*s.have)
	for i, arg := range args {
		if !isOne(arg) {
			continue
		}
		if !strings.Contains(arg, "=") && i+1 < len(args) {
			arg += "=" + args[i+1]
		}
		kept = append(kept, arg)
	}
	if len(kept) == 0 {
		return nil
	}
	return replaceArguments(s.want, isOne, kept...)
}

// replaceArguments replaces the arguments that match others by new ones. If none match, it appends the new ones.
func replaceArguments(o unstructured.Unstructured, others func(arg string) bool, by ...string) error {
	args := resource.ContainerArguments(o)
	at := slices.IndexFunc(args, others)
	if at < 0 {
		at = len(args)
	}
	return resource.SetContainerArguments(o, slices.Insert(slices.DeleteFunc(args, others), at, by...))
}

// established waits until the API server serves a definition.
func (v *install) established(ctx context.Context, crd step) error {
	name, said, why := crd.want.GetName(), false, ""
	served := func(o *unstructured.Unstructured) (bool, error) {
		why = doctor.NotServed(crd.want.Object, o.Object)
		return why == "", nil
	}
	err := follow.WaitSet[bool]{App: v.App, API: crd.api, Fields: follow.Named(name), Read: served,
		See: func(set map[string]bool) (bool, error) {
			if !set[name] && !said {
				v.Say.Wait("%s: waiting until it is served", resource.Title(crd.want))
				said = true
			}
			return set[name], nil
		}}.Until(ctx, v.timeout)
	if errors.Is(err, follow.ErrTooLong) {
		f := &app.Failure{Code: app.ExitTimeout, Cause: err, Message: strings.TrimSuffix(fmt.Sprintf(
			"%s is not served after %s: %s", resource.Title(crd.want), v.timeout, why), ": ")}
		return f.WithHint("see why: kubectl get crd %s -o yaml; then run it again: it does the rest", name)
	}
	return err
}

// sameObject compares two versions of an object without the fields that every write changes.
func sameObject(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(bare(a), bare(b))
}

// bare returns the fields of an object except those that every write changes.
func bare(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	o.SetGeneration(0)
	unstructured.RemoveNestedField(o.Object, "status")
	return o.Object
}
