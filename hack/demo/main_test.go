package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestDemo runs the tour to its end, with the three binaries that it needs and no others, in a directory that
// KUBEBUILDER_ASSETS names. Every step of it comes out as announced.
func TestDemo(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		program, err := filepath.Abs(filepath.Join("..", "..", "bin", "kube", name))
		if err == nil {
			err = os.Symlink(program, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(controlplane.AssetsEnv, dir)
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "✔ every step came out as told") {
		t.Errorf("it ended with:\n%s", &out)
	}
}
