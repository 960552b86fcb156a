package doctor

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Difference returns the path at which a stored object lacks a wanted value; empty if it has all. Additional values of
// the stored object, such as the API server's defaults or fields of a newer release, are not differences. A different
// order of a list is.
func Difference(want, stored any) string { return differs("", want, stored) }

func differs(path string, want, stored any) string {
	switch w := want.(type) {
	case map[string]any:
		s, ok := stored.(map[string]any)
		if !ok {
			return lacks(path)
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			at := key
			if path != "" {
				at = path + "." + key
			}
			value, ok := s[key]
			if !ok {
				if w[key] != nil && !reflect.ValueOf(w[key]).IsZero() {
					return lacks(at)
				}
				continue // the API server omits empty values
			}
			if d := differs(at, w[key], value); d != "" {
				return d
			}
		}
		return ""
	case []any:
		s, ok := stored.([]any)
		if !ok || len(s) < len(w) {
			return lacks(path)
		}
		for i := range w {
			if d := differs(fmt.Sprintf("%s[%d]", path, i), w[i], s[i]); d != "" {
				return d
			}
		}
		return ""
	default:
		if reflect.DeepEqual(number(want), number(stored)) {
			return ""
		}
		return path + " differs"
	}
}

func lacks(path string) string { return path + " is missing" }

// number gives numbers one type, because decoders of JSON and YAML differ.
func number(v any) any {
	switch n := v.(type) {
	case int64:
		return float64(n)
	case int:
		return float64(n)
	default:
		return v
	}
}
