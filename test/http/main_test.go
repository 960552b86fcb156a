// Package http_test checks the allocator's HTTP service from outside: a real API server behind it, the
// real controller in this process (so that the race detector sees it) or as the program that users run,
// and an HTTP client in front. Every request and answer is held against the OpenAPI document.
package http_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
)

// shared is what most tests use: a control plane, and one controller with default flags.
var shared struct {
	cluster    *controlplane.ControlPlane
	admin      client.Client
	controller *instance
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	waitTogether()
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	logs, err := os.MkdirTemp("", "controlplane-logs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code, err = runIn(m, logs)
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

// waitTogether lets more tests run at once than there are processors: most of them wait most of the time.
func waitTogether() {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", "6") // the flag exists
	}
}

func runIn(m *testing.M, logs string) (code int, err error) {
	ctx := context.Background()
	cp, err := controlplane.Start(ctx, controlplane.WithLogDir(logs))
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	if err := cp.InstallManifests(ctx); err != nil {
		return 1, err
	}
	httpClient, err := rest.HTTPClientFor(cp.Config)
	if err != nil {
		return 1, err
	}
	defer httpClient.CloseIdleConnections()
	shared.cluster = cp
	if shared.admin, err = adminOf(cp, httpClient); err != nil {
		return 1, err
	}
	cfg, err := cp.ServiceAccountConfig(ctx, controlplane.SystemNamespace, controlplane.ControllerName)
	if err != nil {
		return 1, err
	}
	// What other tests ask their own controllers these answer themselves.
	alone := func(o *controller.Options) { o.AdvertiseAddress = "none" }
	c, err := inprocess.Start(cfg, alone)
	if err != nil {
		return 1, err
	}
	shared.controller = &instance{c}
	defer func() { err = errors.Join(err, shared.controller.Stop()) }()
	if err := shared.controller.WaitReady(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
