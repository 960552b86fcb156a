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

// optional returns what values of the chart and folders of config bring beside the default, and what is not in the
// namespace bcsnet-system, which goes as a whole. Each is found by its name: roles of a ConfigMap are in the namespace
// of that one. They are in the order of their removal.
func optional() []unstructured.Unstructured {
	const rbac = "rbac.authorization.k8s.io"
	var all []unstructured.Unstructured
	add := func(group, version, kind, name string) {
		var o unstructured.Unstructured
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
		o.SetName(name)
		all = append(all, o)
	}
	for _, name := range []string{"-floatingip", "-hostnic", "-ipamclaims"} {
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

// findOptional returns those of the optional objects that are there, in whatever namespace.
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

// authorsFolder has the policy by which pools name who changed them, and authorsName is its name.
const authorsFolder, authorsName = "authors", "bcsnet-authors"

// withAuthors adds that policy where the cluster serves its kind.
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
	case err != nil && !apierrors.IsForbidden(err): // what is forbidden is served, and refused with all other rights
		return nil, needAdministrator(v.App, err)
	}
	authors, err := resource.Render(authorsFolder)
	return append(all, authors...), err
}
