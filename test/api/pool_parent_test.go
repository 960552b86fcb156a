package api

import (
	"testing"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

func parent(name string) func(*v1.BCSNetPoolSpec) {
	return func(s *v1.BCSNetPoolSpec) { s.Parent = name }
}

func TestPoolParent(t *testing.T) {
	const notName = "must be the name of a pool: lower-case letters, digits, - and ., with a letter or digit at both ends " +
		"and around each dot"
	judge(t, map[string]poolCase{
		"parent":                        {edits: edits{parent("blue.net-1")}},
		"parent that is not there":      {edits: edits{parent("nobody")}},
		"parent without hosts":          {edits: edits{parent("blue"), hosts()}},
		"parent with a bad name":        {edits: edits{parent("Blue")}, want: []string{`spec.parent: Invalid value: "Blue": ` + notName}},
		"parent with a dash at its end": {edits: edits{parent("blue-")}, want: []string{`spec.parent: Invalid value: "blue-": ` + notName}},
		"its own parent": {edits: edits{parent("10.0.0.0")}, want: []string{
			`spec.parent: Invalid value: a pool cannot be its own parent`,
		}},
	})
}

// A pool keeps its parent: what was handed over to it is that of one parent.
func TestPoolKeepsItsParent(t *testing.T) {
	const kept = "spec.parent: Forbidden: cannot change: delete the pool, and make it again"
	c := connect(t)
	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"same":    {"blue", "blue", nil},
		"none":    {"", "", nil},
		"another": {"blue", "red", []string{kept}},
		"first":   {"", "blue", []string{kept}},
		"gone":    {"blue", "", []string{kept}},
	} {
		t.Run(name, func(t *testing.T) {
			p := pool(parent(tc.before))
			create(t, c, p)
			p.Spec.Parent, p.Spec.Priority = tc.after, 7
			if diff := compare(t, tc.want, c.Update(t.Context(), p)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
