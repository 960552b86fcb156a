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

// ForTest starts a control plane for one test, and stops it when the test ends. Its logs are in the test's artifact
// directory, which `go test -artifacts` keeps.
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

// MainWith runs the tests of a package with one control plane and the additions of setUp, and returns the exit code. It
// calls the function that setUp returns after the tests, before the control plane stops. Goroutines that still run
// after that make the run fail. If the run fails, the control plane's logs are kept and named. Fuzz targets get no
// control plane and no setUp: their workers are separate processes, and no decoder needs a cluster. Kubernetes'
// libraries log nothing.
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
	_ = os.RemoveAll(logs) // a leftover in the temporary directory is not a failure
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
