package http_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// instance is a controller that runs in this process.
type instance struct {
	URL string
	log *buffer

	dir    string
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

// start runs a controller as cfg, with default flags but for what change does. It need not be ready.
func start(cfg *rest.Config, change func(*controller.Options)) (*instance, error) {
	dir, err := os.MkdirTemp("", "bcsnet-http-")
	if err != nil {
		return nil, err
	}
	listen, err := controlplane.FreeAddress()
	if err != nil {
		return nil, err
	}
	var o controller.Options
	o.AddFlags(pflag.NewFlagSet("", pflag.ContinueOnError)) // sets the defaults
	i := &instance{URL: "http://" + listen.String(), log: &buffer{}, dir: dir, ended: make(chan struct{})}
	o.Kubeconfig = filepath.Join(dir, "kubeconfig")
	o.HTTPBindAddress, o.MetricsBindAddress, o.HealthProbeBindAddress = listen.String(), "0", "0"
	o.LogOutput = i.log
	if change != nil {
		change(&o)
	}
	if err := errors.Join(o.Validate(), controlplane.WriteKubeconfigFor(cfg, o.Kubeconfig)); err != nil {
		return nil, err
	}
	var ctx context.Context
	ctx, i.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(i.ended)
		i.err = controller.Run(ctx, o)
	}()
	return i, nil
}

// Stop ends the controller as SIGTERM does, and waits for it.
func (i *instance) Stop() error {
	i.cancel()
	<-i.ended
	return errors.Join(i.err, os.RemoveAll(i.dir))
}

func (i *instance) waitReady(ctx context.Context) error {
	return waitFor(ctx, func() error {
		select {
		case <-i.ended:
			return fmt.Errorf("the controller ended: %w; its log:\n%s", i.err, i.log)
		default:
		}
		status, text, err := getText(ctx, i.URL+"/readyz")
		if err == nil && status != http.StatusOK {
			err = errors.New(text)
		}
		return err
	})
}

// startFor runs a controller for one test and returns when it is ready.
func startFor(t *testing.T, cfg *rest.Config, change func(*controller.Options)) *instance {
	t.Helper()
	i := startUnready(t, cfg, change)
	if err := i.waitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return i
}

// startUnready runs a controller for one test.
func startUnready(t *testing.T, cfg *rest.Config, change func(*controller.Options)) *instance {
	t.Helper()
	i, err := start(cfg, change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the controller's log:\n%s", i.log)
		}
	})
	return i
}

// account is the identity that the controller has in a cluster.
func account(t *testing.T, cp *controlplane.ControlPlane) *rest.Config {
	t.Helper()
	cfg, err := cp.ServiceAccountConfig(t.Context(), controlplane.SystemNamespace, controlplane.ControllerName)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// waitFor calls condition until it returns nil, for at most a minute.
func waitFor(ctx context.Context, condition func() error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; at last: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// eventually is waitFor in a test.
func eventually(t *testing.T, condition func() error) {
	t.Helper()
	if err := waitFor(t.Context(), condition); err != nil {
		t.Fatal(err)
	}
}

// buffer is a log whose lines can be looked for.
type buffer struct{ controlplane.Buffer }

// line is the first line of the log that has all the parts; empty when there is none.
func (b *buffer) line(parts ...string) string {
lines:
	for l := range strings.Lines(b.String()) {
		for _, p := range parts {
			if !strings.Contains(l, p) {
				continue lines
			}
		}
		return l
	}
	return ""
}
