// Package cni_test calls bcsnet-ipam as container runtimes do: the program itself, through libcni and the reference
// main plugins, in network namespaces of its own, against the real controller and API server.
package cni_test

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
)

// shared is what all tests use.
var shared struct {
	cluster    *controlplane.ControlPlane
	admin      client.Client
	controller *inprocess.Controller
	caller     *http.Client
	// ca is the CA of the controller's certificate.
	ca string
	// programs has our plugins, and killed those that a failpoint can kill.
	programs, killed string
}

// atOnce is the number of tests that run at once if nobody sets another: most of them wait for a plugin's pauses.
const atOnce = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", atOnce) // the flag exists
	}
	os.Exit(controlplane.MainWith(m, setUp))
}

func setUp(ctx context.Context, cp *controlplane.ControlPlane) (tearDown func() error, err error) {
	if err := cp.InstallManifests(ctx); err != nil {
		return nil, err
	}
	shared.cluster, shared.caller = cp, &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	if shared.admin, err = cp.Admin(); err != nil {
		return nil, err
	}
	cfg, err := cp.ServiceAccountConfig(ctx, controlplane.SystemNamespace, controlplane.ControllerName)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bcsnet-cni-")
	if err != nil {
		return nil, err
	}
	shared.programs, shared.killed = filepath.Join(dir, "programs"), filepath.Join(dir, "killed")
	if shared.controller, err = inprocess.Start(cfg, nil); err != nil {
		return nil, err
	}
	tearDown = func() error { return errors.Join(shared.controller.Stop(), os.RemoveAll(dir)) }
	err = errors.Join(build(ctx, shared.programs), shared.controller.WaitReady(ctx))
	if err == nil {
		shared.ca, err = setUpAccount(ctx, shared.admin)
	}
	if err != nil {
		return nil, errors.Join(err, tearDown())
	}
	return tearDown, nil
}

// build builds our plugins as they ship, but for the flags.
func build(ctx context.Context, into string, flags ...string) error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(into, 0o700); err != nil {
		return err
	}
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", into + "/"}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./plugins/cni/bcsnet-ipam", "./plugins/cni/bcsnet-announce")...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the plugins: %w\n%s", err, out)
	}
	return nil
}

// buildKilled builds the plugins with failpoints, once.
var buildKilled = sync.OnceValue(func() error {
	return build(context.Background(), shared.killed, "-tags", "faults")
})

// references is the directory of the reference plugins. Without them a test is skipped.
func references(t *testing.T) string {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "bin", "cni")
	if _, err := os.Stat(filepath.Join(dir, "bridge")); err != nil {
		t.Skipf("skipped: run hack/cni/build.sh first, which builds the reference plugins: %v", err)
	}
	return dir
}

// number counts the tests that have pools, so that none has the addresses of another.
var number atomic.Int32
