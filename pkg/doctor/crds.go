package doctor

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// NotServed returns the reason why the API server does not serve a definition as wanted, or soon will not; empty if it
// does. Both arguments are whole CustomResourceDefinitions. Other differences are ignored here.
func NotServed(want, stored map[string]any) string {
	if deleted, _, _ := unstructured.NestedString(stored, "metadata", "deletionTimestamp"); deleted != "" {
		return "it has been in deletion since " + deleted + ", and its objects go with it"
	}
	for _, kind := range []string{"NamesAccepted", "Established"} {
		if status, why := condition(stored, kind); status != "True" {
			return strings.TrimSuffix(fmt.Sprintf("its condition %s is %s: %s", kind, status, why), ": ")
		}
	}
	wanted, served := versions(want), versions(stored)
	for _, v := range wanted {
		if !slices.Contains(served, v) {
			return "the API server does not serve its version " + v
		}
	}
	kept, _, _ := unstructured.NestedStringSlice(stored, "status", "storedVersions")
	for _, v := range kept {
		if !slices.Contains(wanted, v) {
			return "objects may be stored as version " + v + ", which this release does not have"
		}
	}
	return ""
}

// condition returns the status of a condition, Unknown if there is none, and the reason.
func condition(crd map[string]any, kind string) (status, why string) {
	field, _, _ := unstructured.NestedFieldNoCopy(crd, "status", "conditions") // null at first
	all, _ := field.([]any)
	for _, c := range all {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			status, _ = m["status"].(string)
			why, _ = m["message"].(string)
			return status, why
		}
	}
	return "Unknown", ""
}

// versions returns the names of the versions that a definition serves.
func versions(crd map[string]any) (served []string) {
	field, _, _ := unstructured.NestedFieldNoCopy(crd, "spec", "versions")
	all, _ := field.([]any)
	for _, v := range all {
		if m, ok := v.(map[string]any); ok && m["served"] == true {
			name, _ := m["name"].(string)
			served = append(served, name)
		}
	}
	return served
}
