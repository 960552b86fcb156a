package install

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// optional returns objects that the chart and optional folders of config create outside the namespace bcsnet-system, in
// the order of their removal. They have only names, because roles for a ConfigMap are in its namespace.
func optional() []unstructured.Unstructured {
	const rbac = "rbac.authorization.k8s.io"
	var all []unstructured.Unstructured
	add := func(group, version, kind, name string) {
		var o unstructured.Unstructured
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
		o.SetName(name)
		all = append(all, o)
	}
	for _, name := range []string{"-floatingip", "-hostnic", "-ipamclaims", "-clusterapi", "-services"} {
		for _, kind := range []string{"RoleBinding", "ClusterRoleBinding", "Role", "ClusterRole"} {
			add(rbac, "v1", kind, resource.ControllerName+name)
		}
	}
	for _, kind := range []string{"FlowSchema", "PriorityLevelConfiguration"} {
		add("flowcontrol.apiserver.k8s.io", "v1", kind, resource.ControllerName)
	}
	for _, kind := range []string{"MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy"} {
		add(admissionregistrationv1.GroupName, "v1", kind, authorsName)
	}
	return all
}

// findOptional returns the optional objects that exist in any namespace.
func (v *uninstall) findOptional(ctx context.Context, c dynamic.Interface) (steps []step, err error) {
	for _, o := range optional() {
		kind, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind()) // right for these kinds
		list, err := c.Resource(kind).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("metadata.name", o.GetName()).String(),
		})
		if apierrors.IsNotFound(err) {
			continue // the cluster does not serve the kind
		}
		if err != nil {
			return nil, needAdministrator(v.App, err)
		}
		for _, have := range list.Items {
			one := step{api: c.Resource(kind), want: have, have: &have}
			if namespace := have.GetNamespace(); namespace != "" {
				one.api = c.Resource(kind).Namespace(namespace)
			}
			steps = append(steps, one)
		}
	}
	return steps, nil
}

// authorsFolder has the policy that records who changed a pool; authorsName is the policy's name.
const authorsFolder, authorsName = "authors", "bcsnet-authors"

// withAuthors adds that policy if the cluster serves its kind.
func (v *install) withAuthors(
	ctx context.Context, c dynamic.Interface, all []unstructured.Unstructured,
) ([]unstructured.Unstructured, error) {
	if v.crdsOnly {
		return all, nil
	}
	kind := admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies")
	_, err := c.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1})
	switch {
	case apierrors.IsNotFound(err):
		return all, nil
	case err != nil && !apierrors.IsForbidden(err): // a forbidden kind is served; the question about rights refuses it
		return nil, needAdministrator(v.App, err)
	}
	authors, err := resource.Render(authorsFolder)
	return append(all, authors...), err
}
