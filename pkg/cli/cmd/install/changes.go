package install

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// changes returns a line for each field that differs between two versions of an object, except fields that every write
// changes.
func changes(before, after *unstructured.Unstructured) []string {
	return differences("", bare(before), bare(after))
}

func differences(path string, before, after any) (lines []string) {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	b, isMap := before.(map[string]any)
	a, both := after.(map[string]any)
	if isMap && both {
		keys := maps.Clone(b)
		maps.Copy(keys, a)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			lines = append(lines, differences(path+"."+key, b[key], a[key])...)
		}
		return lines
	}
	bl, isList := before.([]any)
	al, both := after.([]any)
	if isList && both && len(bl) == len(al) {
		for i := range bl {
			lines = append(lines, differences(fmt.Sprintf("%s[%d]", path, i), bl[i], al[i])...)
		}
		return lines
	}
	return []string{fmt.Sprintf("%s: %s -> %s", path, brief(before), brief(after))}
}

// brief formats a value in at most 60 characters. It gives only the length of a map or a long list.
func brief(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case map[string]any:
		return fmt.Sprintf("{%d}", len(v))
	case []any:
		const most = 60
		if text := fmt.Sprint(v); len(text) <= most {
			return text
		}
		return fmt.Sprintf("[%d]", len(v))
	default:
		return fmt.Sprintf("%.60v", v)
	}
}
