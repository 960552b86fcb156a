package store

import (
	"reflect"
	"strings"
)

// jsonNames returns the JSON names of a struct's fields.
func jsonNames(v any) []string {
	var names []string
	t := reflect.TypeOf(v)
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
