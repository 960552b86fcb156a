package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// namespaces describes the namespaces to which the pool is bound; empty for a pool of the default chain.
func (d *Pool) namespaces() string {
	p, names := d.Plan, d.Pool.Spec.Namespaces
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(p.Namespaces)) // those of the parent
	}
	switch {
	case p.InDefaultChain():
		return ""
	case !p.Bound():
		return "only those that name the pool (default: false)"
	case p.NamespaceSelector == nil:
		return strings.Join(names, ", ") + d.fromParent()
	}
	text := fmt.Sprintf("those with %s", p.NamespaceSelector) + d.fromParent()
	if len(names) > 0 {
		text = strings.Join(names, ", ") + ", and " + text
	}
	if d.labels == nil {
		return text
	}
	var matched []string
	for ns, labels := range d.labels {
		if p.NamespaceSelector.Matches(labels) {
			matched = append(matched, ns)
		}
	}
	if len(matched) == 0 {
		return text + " (none at present)"
	}
	slices.Sort(matched)
	return text + " (" + humanize.List(matched) + ")"
}

// fromParent says that the namespaces are the parent's.
func (d *Pool) fromParent() string {
	if spec := d.Pool.Spec; spec.Parent != "" && len(spec.Namespaces) == 0 && spec.NamespaceSelector == nil {
		return " (as pool " + spec.Parent + ")"
	}
	return ""
}
