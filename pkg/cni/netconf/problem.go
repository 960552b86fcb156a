package netconf

import (
	"encoding/json"
	"errors"
	"fmt"
)

// FieldArgs is the Field of problems with the variable CNI_ARGS.
const FieldArgs = "CNI_ARGS"

// ErrNoObject is the error for a configuration that is not a JSON object.
var ErrNoObject = errors.New("it is not a JSON object")

// Problem describes one invalid field. The other fields can still be used.
type Problem struct {
	// Field is the path of the field, such as ipam.routes[0].dst.
	Field string
	// Text describes the problem.
	Text string
}

// Error returns the field and the problem.
func (p *Problem) Error() string { return p.Field + ": " + p.Text }

// problems collects all problems, so that one error names all of them.
type problems struct{ all []error }

func (p *problems) add(field, format string, args ...any) {
	p.all = append(p.all, &Problem{Field: field, Text: fmt.Sprintf(format, args...)})
}

func (p *problems) err() error { return errors.Join(p.all...) }

// object is a JSON object whose fields are parsed one by one: an invalid field leaves the others usable.
type object struct {
	// path is the prefix of field names in problems; empty, or it ends in a dot.
	path     string
	fields   map[string]json.RawMessage
	problems *problems
}

// newObject returns an object; an empty one for empty text, and an error if the text is not a JSON object.
func newObject(path string, text []byte, p *problems) (object, error) {
	o := object{path: path, problems: p}
	if len(text) == 0 {
		return o, nil
	}
	if err := json.Unmarshal(text, &o.fields); err != nil {
		return o, fmt.Errorf("%w: %w", ErrNoObject, err)
	}
	return o, nil
}

// has reports whether the object has a field, even if it is null.
func (o object) has(name string) bool {
	_, ok := o.fields[name]
	return ok
}

// read returns a field of the object as a type; the zero value if the field is missing, null or invalid.
func read[T any](o object, name string) (v T) {
	text, ok := o.fields[name]
	if !ok {
		return v
	}
	if err := json.Unmarshal(text, &v); err != nil {
		var zero T
		o.problems.add(o.path+name, "%s is not %s", clip(string(text)), kindOf(v))
		return zero
	}
	return v
}

// inner returns a field of the object that is an object itself.
func (o object) inner(name string) object {
	text := o.fields[name]
	if string(text) == "null" {
		text = nil
	}
	in, err := newObject(o.path+name+".", text, o.problems)
	if err != nil {
		o.problems.add(o.path+name, "%s is not an object", clip(string(text)))
	}
	return in
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case bool:
		return "true or false"
	case int:
		return "a whole number"
	case []string:
		return "a list of strings"
	default:
		return "of the form that is documented"
	}
}

// clip shortens text of others, so that an error stays readable.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
