package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHint: each command of a hint is a step of its own. Steps that only list come last, and none comes twice.
func TestHint(t *testing.T) {
	for hint, want := range map[string]Steps{
		"ask again": {{"ask again", ""}},
		"ask for another address; see the pool: bcsnetctl pool describe blue": {
			{"ask for another address; see the pool", "bcsnetctl pool describe blue"},
		},
		"see who holds them: bcsnetctl ip list --pool a; add addresses: bcsnetctl pool add-ip a RANGE": {
			{"add addresses", "bcsnetctl pool add-ip a RANGE"}, {"see who holds them", "bcsnetctl ip list --pool a"},
		},
		"create it: bcsnetctl claim create a; or remove the annotation": {
			{"create it", "bcsnetctl claim create a"}, {"or remove the annotation", ""},
		},
	} {
		var steps Steps
		steps.hint(hint)
		steps.hint(hint)
		if diff := cmp.Diff(want, steps); diff != "" {
			t.Errorf("%s: %s", hint, diff)
		}
	}
}
