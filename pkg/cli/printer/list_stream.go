package printer

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// ListStream prints objects one by one. The output equals that of Output.List byte for byte, but the objects of a large
// pool need not fit into memory.
type ListStream struct {
	listForm
	// show writes an object, given as compact JSON, in the form that it has in the list.
	show    func(*bytes.Buffer, []byte) error
	managed bool // keep the managed fields
	begun   bool
}

// listForm is the text around the objects of a list.
type listForm struct{ begin, between, end, empty string }

// NewListStream returns a stream for -o json and -o yaml; nil for every other format.
func NewListStream(o *Output) *ListStream {
	s := &ListStream{}
	if o.Printer == nil {
		return nil
	}
	switch *o.Flags.OutputFormat {
	case "json":
		const tail = "    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n"
		const head = "{\n    \"apiVersion\": \"v1\",\n    \"items\": ["
		s.listForm = listForm{begin: head + "\n        ", between: ",\n        ", end: "\n    ],\n" + tail,
			empty: head + "],\n" + tail}
		s.show = func(b *bytes.Buffer, text []byte) error { return json.Indent(b, text, "        ", "    ") }
	case "yaml":
		const tail = "kind: List\nmetadata:\n  resourceVersion: \"\"\n"
		s.listForm = listForm{begin: "apiVersion: v1\nitems:\n", end: tail, empty: "apiVersion: v1\nitems: []\n" + tail}
		s.show = func(b *bytes.Buffer, text []byte) error {
			item, err := yaml.JSONToYAML(slices.Concat([]byte("["), text, []byte("]")))
			b.Write(item)
			return err
		}
	default:
		return nil
	}
	s.managed = o.Flags.JSONYamlPrintFlags.ShowManagedFields
	return s
}

// Text encodes an object as compact JSON, because many objects may wait in memory.
func (s *ListStream) Text(u *unstructured.Unstructured) ([]byte, error) {
	if !s.managed {
		u.SetManagedFields(nil)
	}
	return json.Marshal(u)
}

// Write prints objects that Text has encoded.
func (s *ListStream) Write(w io.Writer, texts iter.Seq[[]byte]) error {
	var b bytes.Buffer
	for text := range texts {
		before := s.between
		if !s.begun {
			before, s.begun = s.begin, true
		}
		b.WriteString(before)
		if err := s.show(&b, text); err != nil {
			return err
		}
	}
	_, err := b.WriteTo(w)
	return err
}

// Close prints the end of the list.
func (s *ListStream) Close(w io.Writer) error {
	text := s.end
	if !s.begun {
		text = s.empty
	}
	_, err := io.WriteString(w, text)
	return err
}
