package resource

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// SourceOf returns the ConfigMap from which the controller keeps a pool, as NAMESPACE/NAME; empty if users keep it.
func SourceOf(p Pool) string {
	return cmp.Or(p.Annotations[v1.FloatingIPConfigAnnotation], p.Annotations[v1.HostnicConfigAnnotation])
}

// SourceText describes the ConfigMap of a pool, and whether the pool will be deleted.
func SourceText(p Pool) string {
	text := "ConfigMap " + SourceOf(p)
	switch {
	case p.Annotations[v1.HostnicGoneAnnotation] != "":
		text += ", which no longer gives it to its namespace: the block is deleted when it is empty"
	case p.Annotations[v1.FloatingIPGoneAnnotation] != "":
		text += ", which no longer has it: the pool is deleted when none of its addresses is held"
	}
	return text
}

// WarnReverted warns if the controller will revert a change, because the pool's ConfigMap says otherwise.
func WarnReverted(s *app.App, p Pool, changed func(field string) bool) {
	kept := []string{"net", "mask", "gateway", "vlan", "hostSubnets", "availableIPs"}
	if p.Annotations[v1.HostnicConfigAnnotation] != "" {
		kept = []string{"priority"}
	}
	if SourceOf(p) != "" && slices.ContainsFunc(kept, changed) {
		s.Say.Warn("pool %s is kept from ConfigMap %s, which says otherwise: the controller puts it back", p.Name,
			SourceOf(p))
		s.Hint("change it there")
	}
}

// DiffersIn returns a function that reports whether the specs of two pools differ in a field.
func DiffersIn(a, b Pool) func(field string) bool {
	spec := func(p Pool) map[string]any {
		fields, _ := p.Stored.Object["spec"].(map[string]any)
		return fields
	}
	return func(field string) bool { return !equality.Semantic.DeepEqual(spec(a)[field], spec(b)[field]) }
}
