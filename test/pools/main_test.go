// Package pools_test checks what the pool reconciler promises, on a real API server and with the
// controller as it is shipped.
package pools_test

import (
	"context"
	"net/http"
	"os"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/plugin"
	"github.com/bcsnet/bcsnet/test/site"
)

const host = "10.0.0.11"

var (
	cluster    *controlplane.ControlPlane
	controller *controlplane.Controller
	admin      client.Client
	caller     = &http.Client{Transport: &http.Transport{}}
)

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }

var prepared = sync.OnceValue(func() (err error) {
	ctx := context.Background()
	if admin, err = cluster.Prepare(ctx); err != nil {
		return err
	}
	controller, err = cluster.StartController(ctx, controlplane.ControllerOptions{})
	return err
})

// patience is for what must come, however slow the machine is.
const patience = site.Patience

// at returns what a test has of the control plane that all share.
func at(t *testing.T) *site.Site {
	t.Helper()
	if err := prepared(); err != nil {
		t.Fatal(err)
	}
	return &site.Site{T: t, Admin: admin, Host: host, URL: controller.URL, Caller: caller}
}

// The following are at(t)'s, under short names.

func newPool(t *testing.T, name string, change func(*v1.BCSNetPoolSpec), addresses ...string) *v1.BCSNetPool {
	t.Helper()
	return at(t).NewPool(name, change, addresses...)
}

func edit(t *testing.T, p *v1.BCSNetPool, change func(*v1.BCSNetPoolSpec)) {
	t.Helper()
	at(t).Edit(p, change)
}

func wantStatus(t *testing.T, p *v1.BCSNetPool, capacity, available, active int64) {
	t.Helper()
	at(t).WantStatus(p, capacity, available, active)
}

func wantCondition(
	t *testing.T, p *v1.BCSNetPool, kind string, status metav1.ConditionStatus, reason string, words ...string,
) {
	t.Helper()
	at(t).WantCondition(p, kind, status, reason, words...)
}

func wantReady(t *testing.T, p *v1.BCSNetPool) {
	t.Helper()
	at(t).WantReady(p)
}

func wantGone(t *testing.T, p *v1.BCSNetPool) {
	t.Helper()
	at(t).WantGone(p)
}

func wantObjects(t *testing.T, pool string, want ...string) {
	t.Helper()
	at(t).WantObjects(pool, want...)
}

func wantObjectCount(t *testing.T, pool string, want int) {
	t.Helper()
	at(t).WantObjectCount(pool, want)
}

func newPod(t *testing.T, name string) {
	t.Helper()
	at(t).NewPod(name)
}

func boundPod(t *testing.T, name string) {
	t.Helper()
	at(t).BoundPod(name)
}

func report(t *testing.T, name string, addrs ...string) {
	t.Helper()
	at(t).Report(name, addrs...)
}

func loseAll(t *testing.T, addrs ...string) {
	t.Helper()
	at(t).LoseAll(addrs...)
}

func ask(t *testing.T, method, pod, ipAddr string) plugin.Answer {
	t.Helper()
	return at(t).Ask(method, pod, ipAddr)
}
