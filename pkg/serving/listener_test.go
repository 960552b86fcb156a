package serving

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/bcsnet/bcsnet/pkg/serving/port"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// kind answers how a request came.
func kind(w http.ResponseWriter, r *http.Request) {
	if r.TLS != nil {
		w.WriteHeader(http.StatusOK)
		return
	}
	w.WriteHeader(http.StatusTeapot)
}

// One port answers TLS and plain requests, whatever others do on it that say nothing, or no HTTP.
func TestOnePort(t *testing.T) {
	f := newFixture(t)
	c := f.replica(0)
	f.looks(c)
	at := server(t, c.ServerConfig(), http.HandlerFunc(kind)).String()
	var others []net.Conn
	for _, say := range []string{"", "", "\x16", "\x16\x03\x01\xff\xff", "\x00", "GET", "\x80\x2e\x01"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		others = append(others, conn)
		if _, err := io.WriteString(conn, say); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(f.published())
	config := &tls.Config{RootCAs: pool, ServerName: "bcsnet-controller.bcsnet-system.svc", MinVersion: tls.VersionTLS12}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if status, err := get(t.Context(), "https://"+at, config); status != http.StatusOK {
				t.Errorf("https: %d %v", status, err)
			}
		})
		all.Go(func() {
			if status, err := get(t.Context(), "http://"+at, nil); status != http.StatusTeapot {
				t.Errorf("http: %d %v", status, err)
			}
		})
	}
	all.Wait()
	config = config.Clone()
	config.ServerName = "other.bcsnet-system.svc"
	if _, err := get(t.Context(), "https://"+at, config); err == nil {
		t.Error("another name is in the certificate")
	}
	for _, conn := range others {
		_ = conn.Close() // their part is done
	}
}

// A connection that says nothing is closed in the end, and the end of the listener closes those that are still quiet.
func TestQuietConnections(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Listen(inner, (&Certificates{}).ServerConfig(), &port.Connections{OfSource: 1024, All: 8192})
	var accepting sync.WaitGroup
	accepting.Go(func() {
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accepted: %v", err)
		}
	})
	dial := func() net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	ended := func(conn net.Conn) {
		t.Helper()
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("it is still open: %v", err)
		}
		_ = conn.Close() // its part is done
	}
	ended(dial())
	quiet := dial()
	controlplane.Eventually(t, func() error {
		ours := l.(*listener)
		ours.mu.Lock()
		defer ours.mu.Unlock()
		if len(ours.quiet) == 0 {
			return errors.New("it is not accepted yet")
		}
		return nil
	})
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	ended(quiet)
	accepting.Wait()
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	never, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := Listen(never, nil, &port.Connections{OfSource: 1024, All: 8192}).Close(); err != nil { // nobody accepted
		t.Error(err)
	}
}

// Replicas know each other by their certificates, and nobody else by one of another CA or for another name.
func TestReplicasKnowEachOther(t *testing.T) {
	f := newFixture(t)
	a, b := f.replica(0), f.replica(0)
	f.looks(a)
	f.looks(b)
	at := "https://" + server(t, a.ServerConfig(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.IsReplica(r.TLS) {
			w.WriteHeader(http.StatusForbidden)
		}
	})).String()
	if status, err := get(t.Context(), at, b.ClientConfig()); status != http.StatusOK {
		t.Errorf("a replica: %d %v", status, err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(f.published())
	client := &tls.Config{RootCAs: pool, ServerName: "bcsnet-controller.bcsnet-system.svc", MinVersion: tls.VersionTLS12}
	if status, err := get(t.Context(), at, client); status != http.StatusForbidden {
		t.Errorf("a client without a certificate: %d %v", status, err)
	}
	foreign := mustTrust(t, time.Now())
	leaf, err := foreign.signs.leaf(Names{controlplane.SystemNamespace}, "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	client.Certificates = []tls.Certificate{*leaf}
	if status, err := get(t.Context(), at, client); status != http.StatusForbidden {
		t.Errorf("a certificate of another CA: %d %v", status, err)
	}
	stranger := New(Config{Namespace: controlplane.SystemNamespace, Now: f.time})
	if err := stranger.serve(foreign, f.time()); err != nil {
		t.Fatal(err)
	}
	if status, err := get(t.Context(), at, stranger.ClientConfig()); err == nil {
		t.Errorf("a replica takes a server of another CA: %d", status)
	}
	none := New(Config{Namespace: controlplane.SystemNamespace, Now: f.time})
	before := "https://" + server(t, none.ServerConfig(), http.HandlerFunc(kind)).String()
	if status, err := get(t.Context(), before, b.ClientConfig()); err == nil {
		t.Errorf("without a certificate it answers %d", status)
	}
}

// A mounted certificate is shown to clients and read anew when it changes; replicas call each other by those of the CA
// all the same.
func TestMountedCertificate(t *testing.T) {
	f := newFixture(t)
	dir := t.TempDir()
	write := func(by trust) {
		leaf, err := by.signs.leaf(Names{controlplane.SystemNamespace}, "mounted", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		certificate, key, err := authority{leaf.Leaf, leaf.PrivateKey.(*ecdsa.PrivateKey)}.encode()
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, second := mustTrust(t, time.Now()), mustTrust(t, time.Now())
	write(first)
	mounted, err := certwatcher.New(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		if err := mounted.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	defer watching.Wait()
	defer stop()
	c, peer := f.replica(0), f.replica(0)
	c.Mounted = mounted.GetCertificate
	f.looks(c)
	f.looks(peer)
	at := "https://" + server(t, c.ServerConfig(), http.HandlerFunc(kind)).String()
	client := func(by trust) *tls.Config {
		return &tls.Config{
			RootCAs: by.pool(), ServerName: "bcsnet-controller.bcsnet-system.svc", MinVersion: tls.VersionTLS12,
		}
	}
	if _, err := get(t.Context(), at, client(first)); err != nil {
		t.Error(err)
	}
	write(second)
	controlplane.Eventually(t, func() error {
		_, err := get(t.Context(), at, client(second))
		return err
	})
	if _, err := get(t.Context(), at, peer.ClientConfig()); err != nil {
		t.Errorf("a replica: %v", err)
	}
}
