package controlplane

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// ForTest starts a control plane for one test, and stops it when the test ends. Its logs go to the
// test's artifact directory: `go test -artifacts` keeps them.
func ForTest(t testing.TB, opts ...Option) *ControlPlane {
	t.Helper()
	cp, err := Start(t.Context(), append([]Option{WithLogDir(t.ArtifactDir())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cp
}

// Main runs the tests of a package with one control plane for all of them, which it puts into
// *shared, and returns the exit code. Goroutines that outlive the tests and the control plane fail the
// run. When it fails the logs are kept and named. While a fuzz target runs there is no control plane: each of
// its workers is a process of its own, and no decoder needs one.
//
//	var cluster *controlplane.ControlPlane
//
//	func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }
func Main(m *testing.M, shared **ControlPlane, opts ...Option) int {
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		return m.Run()
	}
	logs, err := os.MkdirTemp("", "controlplane-logs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cp, err := Start(context.Background(), append([]Option{WithLogDir(logs)}, opts...)...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*shared = cp
	code := m.Run()
	err = cp.Stop()
	if code == 0 {
		err = errors.Join(err, goleak.Find())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code != 0 {
		fmt.Fprintf(os.Stderr, "the logs of the control plane are in %s\n", logs)
		return code
	}
	_ = os.RemoveAll(logs) // a leftover in the temporary directory is no reason to fail
	return code
}
