package doctor_test

import (
	"testing"

	"github.com/bcsnet/bcsnet/pkg/doctor"
)

func TestDifference(t *testing.T) {
	type object = map[string]any
	want := object{"spec": object{
		"scope": "Cluster", "empty": "", "nothing": nil, "versions": []any{object{"name": "v1", "max": int64(5), "served": true}},
	}}
	stored := func(version object, more ...any) object {
		return object{"spec": object{
			"scope": "Cluster", "conversion": object{"strategy": "None"}, "versions": append([]any{version}, more...),
		}}
	}
	for name, test := range map[string]struct {
		stored any
		want   string
	}{
		"the same, with defaults": {stored(object{"name": "v1", "max": 5.0, "served": true, "new": "x"}), ""},
		"a version more":          {stored(object{"name": "v1", "max": int64(5), "served": true}, object{"name": "v2"}), ""},
		"another value":           {stored(object{"name": "v1", "max": 6.0, "served": true}), "spec.versions[0].max differs"},
		"a field less":            {stored(object{"name": "v1", "max": 5.0}), "spec.versions[0].served is missing"},
		"a list less":             {object{"spec": object{"scope": "Cluster", "versions": []any{}}}, "spec.versions is missing"},
		"no object":               {object{"spec": "x"}, "spec is missing"},
		"nothing":                 {nil, " is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := doctor.Difference(want, test.stored); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
