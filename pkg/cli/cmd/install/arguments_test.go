package install

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// TestKeepArguments keeps what manifests of one's own say in either form, and nothing of other flags.
func TestKeepArguments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ have, want, kept []string }{
		"behind =":            {[]string{"run", "--key=k", "--other=x"}, []string{"run", "--http=:1"}, []string{"run", "--http=:1", "--key=k"}},
		"as the next one":     {[]string{"--cert", "c", "--key", "k", "--other"}, []string{"--http=:1"}, []string{"--http=:1", "--cert=c", "--key=k"}},
		"in place of another": {[]string{"--key", "k"}, []string{"--key=mine", "--http=:1"}, []string{"--key=k", "--http=:1"}},
		"one without a value": {[]string{"--key"}, []string{"--http=:1"}, []string{"--http=:1", "--key"}},
		"none of these":       {[]string{"--keys=k", "key"}, []string{"--key=mine"}, []string{"--key=mine"}},
	} {
		have, want := withArguments(t, test.have), withArguments(t, test.want)
		if err := keepArguments(step{have: &have, want: want}, "--cert", "--key"); err != nil {
			t.Fatal(err)
		}
		if got := resource.ContainerArguments(want); !slices.Equal(got, test.kept) {
			t.Errorf("%s: %q, want %q", name, got, test.kept)
		}
	}
}

func withArguments(t *testing.T, args []string) unstructured.Unstructured {
	t.Helper()
	o := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{
		"spec": map[string]any{"containers": []any{map[string]any{"name": "c"}}},
	}}}}
	if err := resource.SetContainerArguments(o, args); err != nil {
		t.Fatal(err)
	}
	return o
}
