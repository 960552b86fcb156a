package v1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Notable names the gravest condition that a pool has although hosts can draw from it; it is empty where all is well.
// The controller writes it as the reason of Ready, so that one column shows it, and commands read it from here.
func Notable(conditions []metav1.Condition) string {
	for _, kind := range []string{ConditionExhausted, ConditionOverlap, ConditionDraining} {
		if meta.IsStatusConditionTrue(conditions, kind) {
			return kind
		}
	}
	return ""
}
