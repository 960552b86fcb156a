package http_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
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

// A bad value ends the program with one line on standard error and status 1.
func TestProgramRefusesBadFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--log-level=loud"}, {"--colour"}, {"--kubeconfig=/does/not/exist"}, {"--leader-elect=maybe"},
	} {
		cmd := exec.Command(program(t), args...)
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%v: %v, want exit status 1", args, err)
		}
		text := stderr.String()
		if !strings.HasPrefix(text, "bcsnet-controller: ") || strings.Count(text, "\n") != 1 || stdout.Len() > 0 {
			t.Errorf("%v: standard error %q, output %q; want one line", args, text, stdout.String())
		}
	}
}
