package workload_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/workload"
)

const (
	begin = "<!-- Generated from workload.Annotations by go generate ./pkg/workload: begin -->\n"
	end   = "<!-- Generated: end -->\n"
)

// The table of annotations is that of the code.
func TestAnnotationsAreDocumented(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "reference", "annotations.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the marks of the generated part are missing")
	}
	want := head + begin + table() + end + tail
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is out of date: run go generate ./pkg/workload (-want +got)\n%s", page, diff)
	}
}

func table() string {
	var b strings.Builder
	dialect := ""
	for _, a := range workload.Annotations() {
		if a.Dialect != dialect {
			dialect = a.Dialect
			fmt.Fprintf(&b, "\n## %s\n\n| annotation | on | value | meaning |\n|---|---|---|---|\n", dialect)
		}
		var on []string
		for i, name := range []string{"pod", "workload", "namespace"} {
			if a.On&(workload.OnPod<<i) != 0 {
				on = append(on, name)
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", a.Key, strings.Join(on, ", "), a.Value, a.Meaning)
	}
	return b.String() + "\n"
}

// Each annotation is there once.
func TestAnnotationsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range workload.Annotations() {
		if seen[a.Key] || a.Key == "" || a.On == 0 || a.Value == "" || a.Meaning == "" {
			t.Errorf("%+v", a)
		}
		seen[a.Key] = true
	}
}
