package serving

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/serving/port"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// fixture is a cluster without a CA, and a clock of its own.
type fixture struct {
	t *testing.T
	// core is the controller's client, admin the administrator's.
	core, admin corev1client.CoreV1Interface

	mu  sync.Mutex
	now time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, now: time.Now()}
	client := func(cfg *rest.Config) corev1client.CoreV1Interface {
		h, err := rest.HTTPClientFor(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.CloseIdleConnections)
		cfg = rest.CopyConfig(cfg)
		cfg.QPS = -1
		c, err := corev1client.NewForConfigAndClient(cfg, h)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	f.core, f.admin = client(shared.config), client(shared.cluster.Config)
	f.deleteSecret()
	err := f.admin.ConfigMaps(controlplane.SystemNamespace).Delete(t.Context(), ConfigMapName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) deleteSecret() {
	f.t.Helper()
	err := f.admin.Secrets(controlplane.SystemNamespace).Delete(f.t.Context(), SecretName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		f.t.Fatal(err)
	}
}

func (f *fixture) time() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fixture) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

// replica returns the certificates of a replica whose clock is off by some time.
func (f *fixture) replica(off time.Duration) *Certificates {
	return New(Config{
		Core: f.core, Namespace: controlplane.SystemNamespace, Replica: "replica",
		Now: func() time.Time { return f.time().Add(off) }, Log: slog.New(slog.DiscardHandler),
	})
}

// looks has a replica look at the Secret until that succeeds: another one may be first.
func (f *fixture) looks(c *Certificates) {
	f.t.Helper()
	controlplane.Eventually(f.t, func() error { return c.renew(f.t.Context()) })
}

// published returns what clients trust.
func (f *fixture) published() []byte {
	f.t.Helper()
	o, err := f.admin.ConfigMaps(controlplane.SystemNamespace).Get(f.t.Context(), ConfigMapName, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return []byte(o.Data[keyBundle])
}

// trusts returns an error unless a client that trusts a bundle takes the certificate of a replica, at a time.
func trusts(bundle []byte, c *Certificates, at time.Time) error {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return errors.New("the bundle has no certificate")
	}
	leaf, err := c.leaf()
	if err != nil {
		return err
	}
	_, err = leaf.Leaf.Verify(x509.VerifyOptions{
		DNSName: "bcsnet-controller.bcsnet-system.svc", Roots: pool, CurrentTime: at,
	})
	return err
}

// server serves pages by a listener until the test ends.
func server(t *testing.T, config *tls.Config, h http.Handler) net.Addr {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := s.Serve(Listen(inner, config, &port.Connections{OfSource: 1024, All: 8192})); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		ended.Wait()
	})
	return inner.Addr()
}

// get asks a URL with a TLS configuration, on a connection of its own, and returns the status.
func get(ctx context.Context, url string, config *tls.Config) (int, error) {
	h := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := h.Do(r)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}
