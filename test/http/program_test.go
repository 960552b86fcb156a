package http_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// build builds bcsnet-controller once, into the directory of the shared control plane.
var build = sync.OnceValues(func() (string, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(shared.cluster.Dir, "bcsnet-controller")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/controller")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return binary, nil
})

func program(t *testing.T) string {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

func samplePool(t *testing.T) string {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "config", "samples", "bcsnetpool.yaml")
}
