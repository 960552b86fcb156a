package apiserver

import (
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"
)

// schema has the parts of structural schemas that our CRDs use.
type schema struct {
	Type                 string            `json:"type"`
	Properties           map[string]schema `json:"properties"`
	AdditionalProperties *schema           `json:"additionalProperties"`
	Items                *schema           `json:"items"`
	Required             []string          `json:"required"`
	Default              any               `json:"default"`
	Enum                 []any             `json:"enum"`
	Pattern              string            `json:"pattern"`
	MinLength            *int              `json:"minLength"`
	MaxLength            *int              `json:"maxLength"`
	MinItems             *int              `json:"minItems"`
	MaxItems             *int              `json:"maxItems"`
	Minimum              *float64          `json:"minimum"`
	Maximum              *float64          `json:"maximum"`
	IntOrString          bool              `json:"x-kubernetes-int-or-string"`
	Preserve             bool              `json:"x-kubernetes-preserve-unknown-fields"`
}

// prune drops fields that are not in the schema. At the root it keeps metadata, apiVersion and kind.
func (s schema) prune(v any, root bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			inner, known := s.Properties[key]
			switch {
			case root && key == "metadata":
			case known:
				inner.prune(value, false)
			case s.AdditionalProperties != nil:
				s.AdditionalProperties.prune(value, false)
			case root && (key == "apiVersion" || key == "kind"):
			case !s.Preserve && s.Type == "object" && !s.free():
				delete(v, key)
			}
		}
	case []any:
		if s.Items != nil {
			for _, item := range v {
				s.Items.prune(item, false)
			}
		}
	}
}

// free reports whether fields may have any name, as in a label selector's map.
func (s schema) free() bool { return s.Properties == nil && s.AdditionalProperties != nil }

// fill sets the defaults of missing fields.
func (s schema) fill(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range s.Properties {
			if _, there := v[key]; !there && inner.Default != nil {
				v[key] = clone(inner.Default)
			}
			if value, there := v[key]; there {
				inner.fill(value)
			}
		}
	case []any:
		if s.Items != nil {
			for _, item := range v {
				s.Items.fill(item)
			}
		}
	}
}

// check returns complaints about values that the schema does not allow.
func (s schema) check(path string, v any) (wrong []complaint) {
	say := func(reason, format string, args ...any) {
		wrong = append(wrong, complaint{reason, path, fmt.Sprintf(format, args...)})
	}
	if s.IntOrString {
		return nil
	}
	if is := typeOf(v); s.Type != "" && is != s.Type && (s.Type != "number" || is != "integer") {
		say("FieldValueTypeInvalid", "Invalid value: %q: %s in body must be of type %s: %q", is, path, s.Type, is)
		return wrong
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
		say("FieldValueNotSupported", "Unsupported value: %q", fmt.Sprint(v))
	}
	switch v := v.(type) {
	case string:
		n := utf8.RuneCountInString(v)
		switch {
		case s.MaxLength != nil && n > *s.MaxLength:
			say("FieldValueTooLong", "Too long: may not be more than %d bytes", *s.MaxLength)
		case s.MinLength != nil && n < *s.MinLength:
			say("FieldValueInvalid", "Invalid value: %q: %s in body should be at least %d chars long", v, path,
				*s.MinLength)
		case s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(v):
			say("FieldValueInvalid", "Invalid value: %q: %s in body should match '%s'", v, path, s.Pattern)
		}
	case float64:
		switch {
		case s.Maximum != nil && v > *s.Maximum:
			say("FieldValueInvalid", "Invalid value: %v: %s in body should be less than or equal to %v", v, path,
				*s.Maximum)
		case s.Minimum != nil && v < *s.Minimum:
			say("FieldValueInvalid", "Invalid value: %v: %s in body should be greater than or equal to %v", v, path,
				*s.Minimum)
		}
	case []any:
		switch {
		case s.MaxItems != nil && len(v) > *s.MaxItems:
			say("FieldValueTooMany", "Too many: %d: must have at most %d items", len(v), *s.MaxItems)
		case s.MinItems != nil && len(v) < *s.MinItems:
			say("FieldValueInvalid", "Invalid value: %d: %s in body should have at least %d items", len(v), path,
				*s.MinItems)
		}
		for i, item := range v {
			if s.Items != nil {
				wrong = append(wrong, s.Items.check(fmt.Sprintf("%s[%d]", path, i), item)...)
			}
		}
	case map[string]any:
		for _, name := range s.Required {
			if _, there := v[name]; !there {
				wrong = append(wrong, complaint{"FieldValueRequired", join(path, name), "Required value"})
			}
		}
		for key, value := range v {
			inner, known := s.Properties[key]
			switch {
			case path == "" && key == "metadata":
			case known:
				wrong = append(wrong, inner.check(join(path, key), value)...)
			case s.AdditionalProperties != nil:
				wrong = append(wrong, s.AdditionalProperties.check(join(path, key), value)...)
			}
		}
	}
	return wrong
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case int64:
		return "integer"
	case []any:
		return "array"
	default:
		return "object"
	}
}
