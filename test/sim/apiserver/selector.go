package apiserver

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selects parses the selectors of a list or watch.
func (t target) selects() (match func(*object) bool, p *problem) {
	byLabel, err := labels.Parse(t.query.Get("labelSelector"))
	if err != nil {
		return nil, badRequest("%v", err)
	}
	byField, err := fields.ParseSelector(t.query.Get("fieldSelector"))
	if err != nil {
		return nil, badRequest("%v", err)
	}
	for _, r := range byField.Requirements() {
		if !slices.Contains(t.kind.selectable(), r.Field) {
			return nil, badRequest("field label not supported: %s", r.Field)
		}
	}
	if byLabel.Empty() && byField.Empty() {
		return func(*object) bool { return true }, nil
	}
	return func(o *object) bool {
		for _, r := range byField.Requirements() {
			value, _ := lookup(o.data, strings.Split(r.Field, ".")...).(string)
			if (value == r.Value) != (r.Operator == "=" || r.Operator == "==") {
				return false
			}
		}
		return byLabel.Empty() || byLabel.Matches(labelsOf(o))
	}, nil
}

func labelsOf(o *object) labels.Set {
	all := labels.Set{}
	own, _ := o.meta()["labels"].(map[string]any)
	for key, value := range own {
		all[key], _ = value.(string)
	}
	return all
}

func (k *kind) selectable() []string {
	all := []string{"metadata.name", "metadata.namespace"}
	switch {
	case k.custom != nil:
		all = append(all, k.custom.selectable...)
	case k.kind == "Pod":
		all = append(all, "spec.nodeName", "status.phase")
	}
	return all
}
