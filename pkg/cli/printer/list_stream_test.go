package printer

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestListStream: a list that is printed in parts is, byte for byte, the list that kubectl's printers make.
func TestListStream(t *testing.T) {
	object := func(name, reason string) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "K", "metadata": map[string]any{"name": name, "managedFields": []any{map[string]any{"manager": "m"}}},
			"spec": map[string]any{"text": reason, "list": []any{"a", map[string]any{"b": int64(1)}}, "none": nil, "empty": map[string]any{}, "emptyList": []any{}},
		}}
	}
	objects := []unstructured.Unstructured{
		object("a", "<html> & \"quotes\", two\nlines\n\nand: more"), object("b", ""),
		object("c", strings.Repeat("a long line of many words ", 12)), object("d", " - 0x1F: yes\ttab \u2028"),
	}
	for _, format := range []string{"json", "yaml"} {
		for _, managed := range []string{"false", "true"} {
			for n := range len(objects) + 1 {
				var o Output
				cmd := &cobra.Command{}
				o.AddTo(cmd)
				if err := cmd.ParseFlags([]string{"-o", format, "--show-managed-fields=" + managed}); err != nil {
					t.Fatal(err)
				}
				if err := o.Validate(); err != nil {
					t.Fatal(err)
				}
				var want, got bytes.Buffer
				if err := o.List(&want, objects[:n]); err != nil {
					t.Fatal(err)
				}
				s := NewListStream(&o)
				for _, u := range objects[:n] {
					text, err := s.Text(u.DeepCopy())
					if err != nil {
						t.Fatal(err)
					}
					if err := s.Write(&got, slices.Values([][]byte{text})); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.Close(&got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want.String(), got.String()); diff != "" {
					t.Errorf("%s, %d objects, managed %s: -want +got:\n%s", format, n, managed, diff)
				}
			}
		}
	}
}
