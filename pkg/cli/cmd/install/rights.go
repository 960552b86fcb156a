package install

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// rights are verbs on objects.
type rights []authorizationv1.ResourceAttributes

// rightsTo returns the rights to use verbs on each of the objects.
func rightsTo(all []unstructured.Unstructured, verbs ...string) (r rights) {
	for _, o := range all {
		kind, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind()) // correct for the kinds in the manifests
		for _, verb := range verbs {
			r = append(r, authorizationv1.ResourceAttributes{
				Verb: verb, Group: kind.Group, Version: kind.Version, Resource: kind.Resource,
				Namespace: o.GetNamespace(),
				Name:      o.GetName(),
			})
		}
	}
	return r
}

// missing asks the API server, and returns the rights that the user lacks.
func (v *install) missing(ctx context.Context, c dynamic.Interface, all rights) (rights, error) {
	allowed := make([]bool, len(all))
	var group errgroup.Group
	group.SetLimit(resource.AtOnce)
	for i := range all {
		group.Go(func() (err error) {
			allowed[i], err = may(ctx, c, all[i])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, resource.Explain(v.App, err)
	}
	var left rights
	for i, right := range all {
		if !allowed[i] {
			left = append(left, right)
		}
	}
	return left, nil
}

// refusal returns the error that lists the missing rights; nil if there are none.
func (r rights) refusal() error {
	if len(r) == 0 {
		return nil
	}
	missing := map[string][]string{}
	for _, right := range r {
		kind := schema.GroupResource{Group: right.Group, Resource: right.Resource}.String()
		if !slices.Contains(missing[kind], right.Verb) {
			missing[kind] = append(missing[kind], right.Verb)
		}
	}
	what := app.Map(slices.Sorted(maps.Keys(missing)),
		func(kind string) string { return strings.Join(missing[kind], ", ") + " " + kind })
	return app.Refuse(ipam.ReasonForbidden, "nothing was changed: you may not %s", strings.Join(what, "; ")).
		WithHint("this needs an administrator of the cluster; who you are: kubectl auth whoami")
}

// may asks the API server whether the user has a right.
func may(ctx context.Context, c dynamic.Interface, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(),
			Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
	if err != nil {
		return false, err
	}
	answer, err := c.Resource(authorizationv1.SchemeGroupVersion.WithResource("selfsubjectaccessreviews")).
		Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask what you may: %w", err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, review); err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
