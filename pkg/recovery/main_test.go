package recovery

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }

// identity is the controller's ServiceAccount with the rights of the manifests.
var identity = sync.OnceValues(func() (*rest.Config, error) {
	if err := cluster.InstallManifests(context.Background()); err != nil {
		return nil, err
	}
	return cluster.ServiceAccountConfig(context.Background(), controlplane.SystemNamespace, controlplane.ControllerName)
})

// replica is what a controller has of this package: an index with its feed and a restorer.
type replica struct {
	index  *index.Index
	leases *store.Client
	admin  client.Client
	// tap counts the requests of both.
	tap *intercept.Tap
}

func newReplica(t *testing.T) *replica {
	t.Helper()
	cfg, err := identity()
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{index: index.New(), tap: &intercept.Tap{}}
	cfg = rest.CopyConfig(cfg)
	admin := rest.CopyConfig(cluster.Config)
	cfg.Wrap(r.tap.Wrap)
	admin.Wrap(r.tap.Wrap)
	h, err := rest.HTTPClientFor(admin)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	if r.admin, err = client.New(admin, client.Options{HTTPClient: h, Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if r.leases, err = store.New(cfg, r.index, store.NewClock(nil)); err != nil {
		t.Fatal(err)
	}
	feed := store.NewFeed(r.leases)
	restorer := NewRestorer(r.index, r.leases, slog.New(slog.DiscardHandler), func(lease.Lease) {})
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { feed.Run(ctx) })
	parts.Go(func() { _ = restorer.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		parts.Wait()
		h.CloseIdleConnections()
	})
	controlplane.Until(t, "the feed is there", func() bool { return feed.Synced() && feed.Watching() })
	return r
}

// newPod makes a pod that reports addresses.
func (r *replica) newPod(t *testing.T, name string, addrs ...netip.Addr) *corev1.Pod {
	t.Helper()
	return r.newPodOn(t, "node-1", name, addrs...)
}

func (r *replica) newPodOn(t *testing.T, node, name string, addrs ...netip.Addr) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if err := r.admin.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.admin.Delete(context.Background(), p, client.GracePeriodSeconds(0)) })
	r.reports(t, p, addrs...)
	return p
}

// reports has a pod run and report addresses.
func (r *replica) reports(t *testing.T, p *corev1.Pod, addrs ...netip.Addr) {
	t.Helper()
	p.Status.Phase, p.Status.PodIPs = corev1.PodRunning, nil
	for _, a := range addrs {
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: a.String()})
	}
	if err := r.admin.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// lease reads an address from the API server.
func (r *replica) lease(t *testing.T, a netip.Addr) lease.Lease {
	t.Helper()
	l, err := r.leases.Get(t.Context(), a)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return l
}
