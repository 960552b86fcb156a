// Package attacks_test attacks the allocator's port of the controller as it is installed: with its ServiceAccount, its
// roles and TLS, and a real API server behind it. Each attack has a number, by which docs/threat-model.md describes it.
package attacks_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
)

// shared is what all attacks are against.
var shared struct {
	cluster *controlplane.ControlPlane
	admin   client.Client
	// shipped is a replica with the flags of the manifests and --plain-http. strict is one without it, as a new
	// installation has them.
	shipped, strict *inprocess.Controller
	// doors are where each of them is reached.
	doors map[*inprocess.Controller]*doors
	// pages are where the shipped replica shows its pages for monitoring and probes, and a page of each.
	pages map[string]string
}

func TestMain(m *testing.M) {
	os.Exit(controlplane.MainWith(m, setUp,
		controlplane.WithArgs("kube-apiserver", "--enable-admission-plugins=NodeRestriction"))) // as clusters have it
}

func setUp(ctx context.Context, cp *controlplane.ControlPlane) (tearDown func() error, err error) {
	cfg, err := cp.ControllerConfig(ctx)
	if err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(cp.Config)
	if err != nil {
		return nil, err
	}
	scheme, err := controlplane.Scheme()
	if err != nil {
		return nil, err
	}
	shared.cluster = cp
	if shared.admin, err = client.New(cp.Config, client.Options{HTTPClient: httpClient, Scheme: scheme}); err != nil {
		return nil, err
	}
	metrics, err := controlplane.FreeAddress()
	if err != nil {
		return nil, err
	}
	health, err := controlplane.FreeAddress()
	if err != nil {
		return nil, err
	}
	shared.pages = map[string]string{metrics.String(): "/metrics", health.String(): "/readyz"}
	shared.doors = map[*inprocess.Controller]*doors{}
	start := func(plain bool) (*inprocess.Controller, error) {
		d, err := newDoors()
		if err != nil {
			return nil, err
		}
		c, err := inprocess.StartOn(cfg, d, func(o *controller.Options) {
			// Each answers what it is asked, and looks at its objects often.
			o.PlainHTTP, o.AdvertiseAddress = plain, "none"
			o.CountLoopback = !plain // most attackers have no other addresses here
			if plain {
				o.MetricsBindAddress, o.HealthProbeBindAddress = metrics.String(), health.String()
			}
			o.CertificatesEvery, o.PlainCallersEvery = 200*time.Millisecond, 200*time.Millisecond
		})
		shared.doors[c] = d
		return c, err
	}
	if shared.shipped, err = start(true); err != nil {
		return nil, err
	}
	if shared.strict, err = start(false); err != nil {
		return nil, errors.Join(err, shared.shipped.Stop())
	}
	tearDown = func() error {
		httpClient.CloseIdleConnections()
		return errors.Join(shared.shipped.Stop(), shared.strict.Stop())
	}
	if err := errors.Join(shared.shipped.WaitReady(ctx), shared.strict.WaitReady(ctx)); err != nil {
		return nil, errors.Join(err, tearDown())
	}
	return tearDown, nil
}
