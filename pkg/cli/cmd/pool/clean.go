package pool

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// lastApplied is the annotation in which kubectl apply without --server-side stores the previous file.
const lastApplied = corev1.LastAppliedConfigAnnotation

// cleaned returns a pool as a user would write it, without the fields of the API server, the controller and kubectl.
func cleaned(o *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(v1.GroupVersion.WithKind(resource.PoolKind))
	out.SetName(o.GetName())
	if labels := o.GetLabels(); len(labels) > 0 {
		out.SetLabels(labels)
	}
	annotations := o.GetAnnotations()
	delete(annotations, lastApplied)
	delete(annotations, v1.ChangedByAnnotation)
	delete(annotations, reservationsAnnotation)
	delete(annotations, ownersAnnotation)
	if len(annotations) > 0 {
		out.SetAnnotations(annotations)
	}
	ours := func(f string) bool { return f == v1.PoolFinalizer }
	if others := slices.DeleteFunc(o.GetFinalizers(), ours); len(others) > 0 {
		out.SetFinalizers(others)
	}
	if spec, ok := o.Object["spec"]; ok {
		out.Object["spec"] = spec
	}
	return out
}
