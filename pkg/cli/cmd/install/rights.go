package install

import (
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// rightsTo returns the rights to use verbs on each of the objects.
func rightsTo(all []unstructured.Unstructured, verbs ...string) (r resource.Rights) {
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

// refusal returns the error that lists missing rights; nil if there are none.
func refusal(r resource.Rights) error {
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
