package workload_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/workload"
	"github.com/bcsnet/bcsnet/test/generated"
)

const (
	begin = "<!-- Generated from workload.Annotations by go generate ./pkg/workload: begin -->\n"
	end   = "<!-- Generated: end -->\n"
)

// The table of annotations is that of the code.
func TestAnnotationsAreDocumented(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "reference", "annotations.md")
	generated.UpToDate(t, *update, page, "go generate ./pkg/workload", func(old string) (string, error) {
		return generated.Between(old, begin, end, table())
	})
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
			if a.On&[]workload.Level{workload.OnPod, workload.OnWorkload, workload.OnNamespace}[i] != 0 {
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
