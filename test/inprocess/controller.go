// Package inprocess runs controllers in the process of a test. (Package controlplane runs them as programs; it cannot
// know package controller, whose own tests need a control plane.)
package inprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// Controller is a controller that runs.
type Controller struct {
	// URL is the base of what it serves.
	URL string
	Log *controlplane.Buffer

	dir    string
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

// Start runs a controller as cfg, with default flags but for what change does; nil for nothing. It need not be ready.
func Start(cfg *rest.Config, change func(*controller.Options)) (*Controller, error) {
	listen, err := controlplane.FreeAddress()
	if err != nil {
		return nil, err
	}
	return start(cfg, listen.String(), change, controller.Run)
}

// StartOn does what Start does, and answers on a listener of the test's.
func StartOn(cfg *rest.Config, listener net.Listener, change func(*controller.Options)) (*Controller, error) {
	return start(cfg, listener.Addr().String(), change, func(ctx context.Context, o controller.Options) error {
		return controller.Serve(ctx, cfg, listener, o)
	})
}

func start(
	cfg *rest.Config, listen string, change func(*controller.Options), run func(context.Context,
		controller.Options) error,
) (*Controller, error) {
	dir, err := os.MkdirTemp("", "bcsnet-controller-")
	if err != nil {
		return nil, err
	}
	var o controller.Options
	o.AddFlags(pflag.NewFlagSet("", pflag.ContinueOnError)) // sets the defaults
	c := &Controller{URL: "http://" + listen, Log: &controlplane.Buffer{}, dir: dir, ended: make(chan struct{})}
	o.Kubeconfig = filepath.Join(dir, "kubeconfig")
	o.HTTPBindAddress, o.MetricsBindAddress, o.HealthProbeBindAddress = listen, "0", "0"
	o.LogOutput = c.Log
	if change != nil {
		change(&o)
	}
	if err := errors.Join(o.Validate(), controlplane.WriteKubeconfigFor(cfg, o.Kubeconfig)); err != nil {
		return nil, err
	}
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(c.ended)
		c.err = run(ctx, o)
	}()
	return c, nil
}

// End makes the controller end, as SIGTERM does.
func (c *Controller) End() { c.cancel() }

// Ended returns a channel that is closed when the controller has ended.
func (c *Controller) Ended() <-chan struct{} { return c.ended }

// Stop ends the controller and waits for it.
func (c *Controller) Stop() error {
	c.cancel()
	<-c.ended
	return errors.Join(c.err, os.RemoveAll(c.dir))
}

// WaitReady waits until the controller says that it is ready, for at most a minute.
func (c *Controller) WaitReady(ctx context.Context) error {
	return controlplane.WaitFor(ctx, time.Minute, func() error {
		select {
		case <-c.ended:
			return fmt.Errorf("the controller ended: %w; its log:\n%s", c.err, c.Log)
		default:
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/readyz", nil)
		if err != nil {
			return err
		}
		r.Close = true // no connection outlives the test
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = errors.New(string(text))
		}
		return err
	})
}

// ForTest runs a controller for one test and returns when it is ready.
func ForTest(t testing.TB, cfg *rest.Config, change func(*controller.Options)) *Controller {
	t.Helper()
	c := Unready(t, cfg, change)
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// Tapped does what ForTest does, and a tap sees the controller's requests; nil for none.
func Tapped(t testing.TB, cfg *rest.Config, tap *intercept.Tap, change func(*controller.Options)) *Controller {
	t.Helper()
	if tap != nil {
		cfg = rest.CopyConfig(cfg)
		cfg.Wrap(tap.Wrap)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := StartOn(cfg, l, change)
	attend(t, c, err)
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// Unready runs a controller for one test, and does not wait for it.
func Unready(t testing.TB, cfg *rest.Config, change func(*controller.Options)) *Controller {
	t.Helper()
	c, err := Start(cfg, change)
	attend(t, c, err)
	return c
}

// attend stops a controller at the end of a test, and prints its log if the test has failed.
func attend(t testing.TB, c *Controller, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the controller's log:\n%s", c.Log)
		}
	})
}
