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

// permitted asks the API server whether the user may do something with each of the objects, before the first of them
// is changed. The error has all that the user may not.
func (v *install) permitted(
	ctx context.Context, c dynamic.Interface, all []unstructured.Unstructured, verbs ...string,
) error {
	type question struct {
		authorizationv1.ResourceAttributes
		allowed bool
	}
	var questions []question
	for _, o := range all {
		kind, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind()) // right for the kinds in the manifests
		for _, verb := range verbs {
			questions = append(questions, question{ResourceAttributes: authorizationv1.ResourceAttributes{
				Verb: verb, Group: kind.Group, Version: kind.Version, Resource: kind.Resource, Namespace: o.GetNamespace(),
				Name: o.GetName(),
			}})
		}
	}
	var group errgroup.Group
	group.SetLimit(resource.AtOnce)
	for i := range questions {
		group.Go(func() (err error) {
			questions[i].allowed, err = may(ctx, c, questions[i].ResourceAttributes)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return resource.Explain(v.App, err)
	}
	missing := map[string][]string{}
	for _, q := range questions {
		kind := schema.GroupResource{Group: q.Group, Resource: q.Resource}.String()
		if !q.allowed && !slices.Contains(missing[kind], q.Verb) {
			missing[kind] = append(missing[kind], q.Verb)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var what []string
	for _, kind := range slices.Sorted(maps.Keys(missing)) {
		what = append(what, strings.Join(missing[kind], ", ")+" "+kind)
	}
	return app.Refuse(ipam.ReasonForbidden, "nothing was changed: you may not %s", strings.Join(what, "; ")).
		WithHint("this needs an administrator of the cluster; who you are: kubectl auth whoami")
}

// may asks the API server whether the user may do something.
func may(ctx context.Context, c dynamic.Interface, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
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
