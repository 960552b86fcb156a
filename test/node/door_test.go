//go:build linux

package node

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/test/node/bed"
)

// door is what the plugins take for the controller: it has a certificate of the CA, and passes all on, with their
// tokens, unless a test stands in it.
type door struct {
	url    string
	server *http.Server
	pass   http.Handler

	closed atomic.Bool
	mu     sync.Mutex
	stands []*stand
}

func openDoor(ctx context.Context, b *bed.Bed, controller string) (*door, error) {
	target, err := url.Parse(controller)
	if err != nil {
		return nil, err
	}
	target.Scheme = "https"
	trusted, err := b.CA(ctx)
	if err != nil {
		return nil, err
	}
	own, err := certificate(ctx, b)
	if err != nil {
		return nil, err
	}
	listen := netip.AddrPortFrom(b.Gateway4(), bed.AllocatorPort+1).String()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, err
	}
	listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(trusted))
	d := &door{url: "https://" + listen, pass: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		// A connection for each request: a controller that is killed and comes back is met anew.
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: pool, ServerName: bed.ServerName, MinVersion: tls.VersionTLS13},
		},
		// As if there was no door.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	d.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: d}
	go func() { _ = d.server.Serve(listener) }()
	return d, nil
}

// certificate makes one of the controller's CA, by the name of the controller.
func certificate(ctx context.Context, b *bed.Bed) (tls.Certificate, error) {
	ca, err := b.Authority(ctx)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "door"}, DNSNames: []string{bed.ServerName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca.Leaf, key.Public(), ca.PrivateKey)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func (d *door) close() error { return d.server.Close() }

// moment is when a request is held.
type moment int

const (
	beforeController moment = iota // the controller has not seen it
	afterController                // the controller has answered, and the plugin has not seen it
)

// stand is a test that waits at the door for a request.
type stand struct {
	method, pod   string
	at            moment
	held, release chan struct{}
}

// hold has the first request of a method for a pod wait at the door. held is closed when it waits, and it goes on when
// release is called, at the latest at the end of the test. Others pass.
func (d *door) hold(t *testing.T, method, pod string, at moment) (held <-chan struct{}, release func()) {
	t.Helper()
	s := &stand{method, pod, at, make(chan struct{}), make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stands = append(d.stands, s)
	release = sync.OnceFunc(func() {
		d.take(func(other *stand) bool { return other == s })
		close(s.release)
	})
	t.Cleanup(release)
	return s.held, release
}

// take returns a stand that waits for what is asked, which it does no more.
func (d *door) take(fits func(*stand) bool) *stand {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.stands, fits)
	if i < 0 {
		return nil
	}
	s := d.stands[i]
	d.stands = slices.Delete(d.stands, i, i+1)
	return s
}

// shut has nobody get through, as when no replica is there, until it is opened, at the latest at the end of the test.
func (d *door) shut(t *testing.T) (open func()) {
	t.Helper()
	d.closed.Store(true)
	open = func() { d.closed.Store(false) }
	t.Cleanup(open)
	return open
}

// ServeHTTP passes a request on, now or when a test says so.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.closed.Load() {
		panic(http.ErrAbortHandler)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var about struct {
		PodName string `json:"podName"`
	}
	_ = json.Unmarshal(body, &about) // what is no object is about nobody
	s := d.take(func(s *stand) bool { return s.method == r.Method && s.pod == about.PodName })
	switch {
	case s == nil:
		d.pass.ServeHTTP(w, r)
	case s.at == beforeController:
		close(s.held)
		<-s.release
		d.pass.ServeHTTP(w, r)
	default:
		// The controller serves it to the end, whatever becomes of who asked.
		answer := httptest.NewRecorder()
		d.pass.ServeHTTP(answer, r.Clone(context.WithoutCancel(r.Context())))
		close(s.held)
		<-s.release
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}
}

// errTimeout is for what did not come in time.
var errTimeout = errors.New("it did not come within a minute")

// comes waits for a channel to be closed.
func comes(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("%s: %v", what, errTimeout)
	}
}
