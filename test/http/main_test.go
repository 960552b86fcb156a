// Package http_test checks the allocator's HTTP service from outside: a real API server behind it, the
// real controller in this process (so that the race detector sees it) or as the program that users run,
// and an HTTP client in front. Every request and answer is held against the OpenAPI document.
package http_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

func TestMain(m *testing.M) {
	waitTogether()
	os.Exit(controlplane.MainWith(m, setUp))
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

// setUp starts the controller that most tests use.
func setUp(ctx context.Context, cp *controlplane.ControlPlane) (tearDown func() error, err error) {
	if err := cp.InstallManifests(ctx); err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(cp.Config)
	if err != nil {
		return nil, err
	}
	shared.cluster = cp
	if shared.admin, err = adminOf(cp, httpClient); err != nil {
		return nil, err
	}
	cfg, err := cp.ServiceAccountConfig(ctx, controlplane.SystemNamespace, controlplane.ControllerName)
	if err != nil {
		return nil, err
	}
	// What other tests ask their own controllers these answer themselves.
	alone := func(o *controller.Options) { o.AdvertiseAddress = "none" }
	c, err := inprocess.Start(cfg, alone)
	if err != nil {
		return nil, err
	}
	shared.controller = &instance{c}
	tearDown = func() error {
		httpClient.CloseIdleConnections()
		return c.Stop()
	}
	if err := c.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, tearDown())
	}
	return tearDown, nil
}
