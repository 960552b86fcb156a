package doctor_test

import (
	"testing"

	"github.com/bcsnet/bcsnet/pkg/doctor"
)

// TestNotServed: what keeps the API server from serving a definition.
func TestNotServed(t *testing.T) {
	type object = map[string]any
	crd := func(change func(o, status object)) object {
		status := object{
			"conditions": []any{
				object{"type": "NamesAccepted", "status": "True"}, object{"type": "Established", "status": "True"},
			},
			"storedVersions": []any{"v1"},
		}
		o := object{
			"metadata": object{"name": "x"}, "status": status,
			"spec": object{"versions": []any{object{"name": "v1", "served": true, "storage": true}}},
		}
		change(o, status)
		return o
	}
	same := func(object, object) {}
	for name, tc := range map[string]struct {
		change func(o, status object)
		want   string
	}{
		"served": {same, ""},
		"in deletion": {func(o, _ object) { o["metadata"] = object{"deletionTimestamp": "2026-01-02T03:04:05Z"} },
			"it has been in deletion since 2026-01-02T03:04:05Z, and its objects go with it"},
		"its names are another's": {func(_, s object) {
			s["conditions"] = []any{object{"type": "NamesAccepted", "status": "False", "message": `"bnp" is already in use`}}
		}, `its condition NamesAccepted is False: "bnp" is already in use`},
		"not established": {func(_, s object) { s["conditions"] = s["conditions"].([]any)[:1] }, "its condition Established is Unknown"},
		"no status yet":   {func(o, _ object) { delete(o, "status") }, "its condition NamesAccepted is Unknown"},
		"its version is switched off": {func(o, _ object) {
			o["spec"] = object{"versions": []any{object{"name": "v1", "served": false}, object{"name": "v2", "served": true}}}
		}, "the API server does not serve its version v1"},
		"stored as another version": {func(_, s object) { s["storedVersions"] = []any{"v1alpha1", "v1"} },
			"objects may be stored as version v1alpha1, which this release does not have"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := doctor.NotServed(crd(same), crd(tc.change)); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
