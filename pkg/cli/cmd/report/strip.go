package report

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// strip removes possible secrets from an object, and fields that do not help to find a problem.
func strip(o *unstructured.Unstructured) {
	o.SetManagedFields(nil)
	annotations := o.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
	blank(o.Object)
}

// removed replaces a value.
const removed = "(removed)"

// blank replaces the values of environment variables at any depth.
func blank(in any) {
	switch in := in.(type) {
	case []any:
		for _, e := range in {
			blank(e)
		}
	case map[string]any:
		for name, value := range in {
			if vars, ok := value.([]any); ok && name == "env" {
				blankVars(vars)
				continue
			}
			blank(value)
		}
	}
}

func blankVars(vars []any) {
	for _, e := range vars {
		if m, ok := e.(map[string]any); ok && m["value"] != nil {
			m["value"] = removed
		}
	}
}

// lean removes all fields of a node on which allocation does not depend.
func lean(o *unstructured.Unstructured) {
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	for field := range status {
		if !slices.Contains([]string{"addresses", "conditions", "nodeInfo"}, field) {
			delete(status, field)
		}
	}
	o.Object["status"] = status
	o.SetAnnotations(nil)
}
