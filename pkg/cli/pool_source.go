package cli

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// sourceOf is the ConfigMap, NAMESPACE/NAME, that a pool is kept from; empty where people keep it.
func sourceOf(p pool) string { return p.Annotations[v1.FloatingIPConfigAnnotation] }

// sourceText says what keeps a pool, and whether its end is near.
func sourceText(p pool) string {
	text := "ConfigMap " + sourceOf(p)
	if p.Annotations[v1.FloatingIPGoneAnnotation] != "" {
		text += ", which has it no more: the pool goes when none of its addresses is held"
	}
	return text
}

// warnRetained says that a change of what the ConfigMap of a pool says will be put back.
func warnRetained(s *app.App, p pool, changed func(field string) bool) {
	kept := []string{"net", "mask", "gateway", "vlan", "hostSubnets", "availableIPs"}
	if sourceOf(p) != "" && slices.ContainsFunc(kept, changed) {
		s.Say.Warn("pool %s is kept from ConfigMap %s, which says otherwise: the controller puts it back", p.Name, sourceOf(p))
		s.Hint("change it there")
	}
}

// differsIn says of the fields of the spec whether they differ.
func differsIn(a, b pool) func(field string) bool {
	spec := func(p pool) map[string]any {
		fields, _ := p.stored.Object["spec"].(map[string]any)
		return fields
	}
	return func(field string) bool { return !equality.Semantic.DeepEqual(spec(a)[field], spec(b)[field]) }
}
