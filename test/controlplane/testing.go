package controlplane

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
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

// Main runs the tests of a package with one control plane for all of them, which it puts into *shared, and returns the
// exit code. See MainWith.
//
//	var cluster *controlplane.ControlPlane
//
//	func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }
func Main(m *testing.M, shared **ControlPlane, opts ...Option) int {
	return MainWith(m, func(_ context.Context, cp *ControlPlane) (func() error, error) {
		*shared = cp
		return func() error { return nil }, nil
	}, opts...)
}

// MainWith runs the tests of a package with one control plane and what setUp adds to it, and returns the exit code.
// What setUp returns is called after the tests, before the control plane stops. Goroutines that outlive all of it fail
// the run. When the run fails the logs of the control plane are kept and named. While a fuzz target runs there is no
// control plane and no set-up: each of its workers is a process of its own, and no decoder needs a cluster. The
// libraries of Kubernetes log nothing.
func MainWith(
	m *testing.M, setUp func(context.Context, *ControlPlane) (tearDown func() error, err error), opts ...Option,
) int {
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		return m.Run()
	}
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	logs, err := os.MkdirTemp("", "controlplane-logs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code, err := runWith(m, setUp, append([]Option{WithLogDir(logs)}, opts...))
	if err == nil && code == 0 {
		err = goleak.Find()
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

func runWith(
	m *testing.M, setUp func(context.Context, *ControlPlane) (func() error, error), opts []Option,
) (code int, err error) {
	ctx := context.Background()
	cp, err := Start(ctx, opts...)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	tearDown, err := setUp(ctx, cp)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, tearDown()) }()
	return m.Run(), nil
}
