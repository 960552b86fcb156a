package printer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

func TestSorted(t *testing.T) {
	object := func(value any) map[string]any { return map[string]any{"spec": map[string]any{"field": value}} }
	for name, test := range map[string]struct {
		values []any
		want   []any
	}{
		"numbers":                 {[]any{int64(10), int64(9), 9.5}, []any{int64(9), 9.5, int64(10)}},
		"addresses":               {[]any{"10.0.0.10", "10.0.0.9", "::1"}, []any{"10.0.0.9", "10.0.0.10", "::1"}},
		"names of IPv6 addresses": {[]any{"2001-0db8-0000-0000-0000-0000-0000-0001", "10.0.0.9"}, []any{"10.0.0.9", "2001-0db8-0000-0000-0000-0000-0000-0001"}},
		"words":                   {[]any{"b", "a", true}, []any{"a", "b", true}},
		"nothing comes first":     {[]any{"b", nil, int64(1)}, []any{nil, int64(1), "b"}},
	} {
		by := SortBy{Text: "spec.field"}
		if err := by.validate(); err != nil {
			t.Fatal(err)
		}
		if err := Sorted(&by, test.values, func(v any) (SortKey, error) { return by.Key(object(v)) }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, test.values); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestSortedWrong(t *testing.T) {
	items := []map[string]any{{"spec": map[string]any{"hosts": []any{"a"}}}}
	for text, want := range map[string]string{
		"{.spec":     "unclosed",
		"{}":         "not a field",
		"spec.color": "nothing in the list has this field",
		".spec":      "cannot be compared",
	} {
		by := SortBy{Text: text}
		err := by.validate()
		if err == nil {
			err = Sorted(&by, items, by.Key)
		}
		if err == nil || app.ExitCode(t.Context(), err) != app.ExitUsage || !strings.Contains(err.Error(), want) &&
			want != "unclosed" {
			t.Errorf("%s: %v, want one of usage with %q", text, err, want)
		}
	}
	for _, text := range []string{"metadata.name", ".metadata.name", "{metadata.name}", "{.metadata.name}"} {
		if by := (SortBy{Text: text}); by.validate() != nil {
			t.Errorf("%s is refused", text)
		}
	}
}
