package serving

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// Replicas that start at once, without a CA, come to have the same one.
func TestReplicasMakeOneCA(t *testing.T) {
	f := newFixture(t)
	replicas := make([]*Certificates, 8)
	var all sync.WaitGroup
	for i := range replicas {
		replicas[i] = f.replica(0)
		all.Go(func() { f.looks(replicas[i]) })
	}
	all.Wait()
	bundle := f.published()
	if n := bytes.Count(bundle, []byte("BEGIN CERTIFICATE")); n != 1 {
		t.Errorf("%d CAs are published", n)
	}
	keys := map[string]bool{}
	for i, c := range replicas {
		if err := trusts(bundle, c, f.time()); err != nil {
			t.Errorf("replica %d: %v", i, err)
		}
		leaf, _ := c.leaf()
		keys[leaf.Leaf.SerialNumber.String()] = true
	}
	if len(keys) != len(replicas) {
		t.Errorf("%d replicas have %d certificates", len(replicas), len(keys))
	}
}

// The Secret that somebody deletes comes back with the same CA while a replica lives, also when all look at once.
func TestSecretIsDeleted(t *testing.T) {
	f := newFixture(t)
	replicas := []*Certificates{f.replica(0), f.replica(0)}
	f.looks(replicas[0])
	f.looks(replicas[1])
	before := f.published()
	for range 3 {
		f.deleteSecret()
		var all sync.WaitGroup
		for _, c := range replicas {
			all.Go(func() { f.looks(c) })
		}
		all.Wait()
		if after := f.published(); !bytes.Equal(before, after) {
			t.Fatalf("another CA:\n%s\n%s", before, after)
		}
	}
	f.looks(f.replica(0)) // one that starts finds it
	if !bytes.Equal(before, f.published()) {
		t.Error("one that starts makes another CA")
	}
}

// Where a replica that starts is the first after the Secret was deleted, both CAs are published, and nobody goes over
// to the new one at once.
func TestSecretOfAnotherCA(t *testing.T) {
	f := newFixture(t)
	old := f.replica(0)
	f.looks(old)
	before := f.published()
	f.deleteSecret()
	f.looks(f.replica(0))
	f.looks(old)
	both := f.published()
	if n := bytes.Count(both, []byte("BEGIN CERTIFICATE")); n != 2 {
		t.Errorf("%d CAs are published", n)
	}
	f.looks(old)
	if err := trusts(before, old, f.time()); err != nil {
		t.Errorf("at once: %v", err)
	}
	f.pass(59 * time.Minute)
	f.looks(old)
	if err := trusts(before, old, f.time()); err != nil {
		t.Errorf("after 59 minutes: %v", err)
	}
	f.pass(2 * time.Minute)
	f.looks(old)
	if trusts(before, old, f.time()) == nil {
		t.Error("it stays with the CA that the Secret has not")
	}
	if err := trusts(both, old, f.time()); err != nil {
		t.Errorf("after 61 minutes: %v", err)
	}
}

// While a CA follows another one, no client fails whose file with the CAs is up to 55 minutes old; each connection is
// a new one.
func TestRotationUnderLoad(t *testing.T) {
	f := newFixture(t)
	replicas := []*Certificates{f.replica(0), f.replica(0)}
	var urls []string
	for _, c := range replicas {
		f.looks(c)
		config := c.ServerConfig()
		urls = append(urls, "https://"+server(t, config, http.NotFoundHandler()).String())
	}
	first := f.published()
	if out, err := shared.cluster.Kubectl(t.Context(), "annotate", "secret", "-n", controlplane.SystemNamespace,
		SecretName, RotateAnnotation+"=now").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var mu sync.Mutex
	files := [][]byte{first} // one for each step of five minutes, the newest last
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load sync.WaitGroup
	calls := 0
	for _, url := range urls {
		load.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				bundle, oldest := files[len(files)-1], files[max(0, len(files)-12)]
				at := f.time()
				calls++
				mu.Unlock()
				for _, file := range [][]byte{bundle, oldest} {
					pool := x509.NewCertPool()
					pool.AppendCertsFromPEM(file)
					_, err := get(ctx, url, &tls.Config{
						RootCAs: pool, ServerName: "bcsnet-controller.bcsnet-system.svc", MinVersion: tls.VersionTLS12,
						Time: func() time.Time { return at },
					})
					if err != nil && ctx.Err() == nil {
						t.Errorf("at %s: %v", at, err)
						return
					}
				}
			}
		})
	}
	for range 30 { // two hours and a half
		mu.Lock()
		before := calls
		mu.Unlock()
		controlplane.Eventually(t, func() error { // each step has calls of its own
			mu.Lock()
			defer mu.Unlock()
			if calls < before+4 && !t.Failed() {
				return context.DeadlineExceeded
			}
			return nil
		})
		mu.Lock()
		f.pass(5 * time.Minute)
		mu.Unlock()
		for _, c := range replicas {
			f.looks(c)
		}
		mu.Lock()
		files = append(files, f.published())
		mu.Unlock()
	}
	stop()
	load.Wait()
	for i, c := range replicas {
		if trusts(first, c, f.time()) == nil {
			t.Errorf("replica %d stays with the old CA", i)
		}
	}
	f.pass(leafLife) // no certificate of the old one is left
	f.looks(replicas[0])
	f.looks(replicas[0])
	if n := bytes.Count(f.published(), []byte("BEGIN CERTIFICATE")); n != 1 {
		t.Errorf("%d CAs are published in the end", n)
	}
}

// Clocks of clients may be a day behind or six days ahead, those of replicas hours off.
func TestClocksAreOff(t *testing.T) {
	f := newFixture(t)
	for _, off := range []time.Duration{0, -20 * time.Hour, 20 * time.Hour} {
		c := f.replica(off)
		f.looks(c)
		bundle := f.published()
		for _, client := range []time.Duration{-3 * time.Hour, 0, 3 * time.Hour, 5 * 24 * time.Hour} {
			if err := trusts(bundle, c, f.time().Add(client)); err != nil {
				t.Errorf("a replica that is %s off and a client that is %s off: %v", off, client, err)
			}
		}
	}
	c := f.replica(0)
	f.looks(c)
	if err := trusts(f.published(), c, f.time().Add(-20*time.Hour)); err != nil {
		t.Errorf("a client that is 20 hours behind: %v", err)
	}
	leaf, _ := c.leaf()
	f.pass(leafRenew + time.Minute)
	f.looks(c)
	if renewed, _ := c.leaf(); renewed == leaf {
		t.Error("the certificate is not renewed after a day")
	}
}

// A Secret that somebody has damaged stays as it is; connections go on, and the error says which key is wrong.
func TestDamagedSecret(t *testing.T) {
	f := newFixture(t)
	c := f.replica(0)
	f.looks(c)
	bundle := f.published()
	patch := `{"data":{"tls.crt":"eA=="}}`
	if out, err := shared.cluster.Kubectl(t.Context(), "patch", "secret", "-n", controlplane.SystemNamespace, SecretName,
		"-p", patch).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, who := range []*Certificates{c, f.replica(0)} {
		if err := who.renew(t.Context()); err == nil || !strings.Contains(err.Error(), "is damaged (tls.crt and tls.key") {
			t.Errorf("%v", err)
		}
	}
	if err := trusts(bundle, c, f.time()); err != nil {
		t.Error(err)
	}
	o, err := f.admin.Secrets(controlplane.SystemNamespace).Get(t.Context(), SecretName, metav1.GetOptions{})
	if err != nil || string(o.Data["tls.crt"]) != "x" {
		t.Errorf("the Secret was changed: %v", err)
	}
}
