// Package groups_test checks pools that are carved from others, on a real API server and with the controller as it is
// shipped: their life, what they do to each other, crashes and stale replicas, and all of that while pods ask. Each
// hand-over waits until requests that began earlier are over: the tests run at the same time.
package groups_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/site"
)

// atOnce is the number of tests that run at the same time: more than there may be processors, since they wait more than
// they work, and few enough for the control planes that some of them have of their own.
const atOnce = "4"

var (
	cluster    *controlplane.ControlPlane
	controller *controlplane.Controller
	admin      client.Client
	caller     = &http.Client{Transport: &http.Transport{}}
	sites      atomic.Int32
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(controlplane.Main(m, &cluster))
}

var prepared = sync.OnceValue(func() (err error) {
	ctx := context.Background()
	if admin, err = cluster.Prepare(ctx); err != nil {
		return err
	}
	controller, err = cluster.StartController(ctx, controlplane.ControllerOptions{})
	return err
})

// newSite returns what a test has of a control plane, with a host that no other test has.
func newSite(t *testing.T, admin client.Client) *site.Site {
	t.Helper()
	t.Cleanup(caller.CloseIdleConnections)
	return &site.Site{T: t, Admin: admin, Host: fmt.Sprintf("10.0.0.%d", 10+sites.Add(1)), Caller: caller}
}

// at returns what a test has of the control plane and the controller that all share.
func at(t *testing.T) *site.Site {
	t.Helper()
	if err := prepared(); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, admin)
	s.URL = controller.URL
	return s
}

// alone gives a test a control plane of its own, on which no controller runs.
func alone(t *testing.T) (*site.Site, *controlplane.ControlPlane) {
	t.Helper()
	own := controlplane.ForTest(t)
	if err := own.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return newSite(t, own.AdminFor(t)), own
}

// aloneWith gives a test a control plane and a controller of its own.
func aloneWith(t *testing.T) (*site.Site, *controlplane.ControlPlane, *controlplane.Controller) {
	t.Helper()
	s, own := alone(t)
	c, err := own.StartController(t.Context(), controlplane.ControllerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.URL = c.URL
	return s, own, c
}
