package attacks_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cni "github.com/bcsnet/bcsnet/pkg/cni/client"
	"github.com/bcsnet/bcsnet/pkg/serving"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// authorities are attacks on the CA, and on who trusts it.
func authorities() []attack {
	return []attack{
		{"deleted_secret", deletedSecret}, {"damaged_secret", damagedSecret}, {"two_replicas_make_the_CA", twoReplicas},
		{"changed_bundle", changedBundle}, {"replica_that_redirects", redirecting}, {"answer_of_somebody_else", impostor},
	}
}

// The Secret comes back with the same CA, and who knows the old one is answered throughout.
func deletedSecret(t *testing.T, w *world) {
	before := secret(t)
	if err := shared.admin.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error {
		var now corev1.Secret
		err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(before), &now)
		if err == nil && (now.UID == before.UID || !bytes.Equal(now.Data["tls.crt"], before.Data["tls.crt"])) {
			err = errors.New("another CA")
		}
		return err
	})
	w.send(t, list(w.operator)).done(t, "by the CA from before")
}

// What cannot be read is left alone: the replicas go on with what they have.
func damagedSecret(t *testing.T, w *world) {
	before := secret(t)
	damaged := before.DeepCopy()
	damaged.Data["tls.key"] = []byte("-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n")
	if err := shared.admin.Update(t.Context(), damaged); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error {
		if shared.shipped.Log.Line("is damaged") == "" {
			return errors.New("the log does not say so")
		}
		return nil
	})
	w.send(t, list(w.operator)).done(t, "while it is damaged")
	now := secret(t)
	if diff := cmp.Diff(damaged.Data, now.Data); diff != "" {
		t.Errorf("it was written over (-damaged +now):\n%s", diff)
	}
	now.Data = before.Data
	if err := shared.admin.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
}

// Replicas that all begin at once, where there is no Secret yet, come to one CA.
func twoReplicas(t *testing.T, w *world) {
	const namespace = "race"
	w.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	h, err := corev1client.NewForConfig(shared.cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop()
	all := make([]*serving.Certificates, 6)
	for i := range all {
		all[i] = serving.New(serving.Config{
			Core: h, Namespace: namespace, Replica: "r", Now: time.Now, Every: 50 * time.Millisecond,
			Log: slog.New(slog.DiscardHandler),
		})
		parts.Go(func() { _ = all[i].Run(ctx) })
	}
	controlplane.Eventually(t, func() error {
		// The name of a CA has its time to the second: what tells two apart is the key that signed.
		var signer []byte
		for _, c := range all {
			leaf, err := c.ServerConfig().GetCertificate(&tls.ClientHelloInfo{ServerName: serverName})
			if err != nil {
				return err
			}
			if len(leaf.Leaf.AuthorityKeyId) == 0 {
				return errors.New("a certificate names no key")
			}
			if signer != nil && !bytes.Equal(signer, leaf.Leaf.AuthorityKeyId) {
				return errors.New("two CAs sign")
			}
			signer = leaf.Leaf.AuthorityKeyId
		}
		return nil
	})
}

// Who may write the ConfigMap of the CA has it for moments.
func changedBundle(t *testing.T, _ *world) {
	key := client.ObjectKey{Namespace: controlplane.SystemNamespace, Name: "bcsnet-controller-ca"}
	var before corev1.ConfigMap
	if err := shared.admin.Get(t.Context(), key, &before); err != nil {
		t.Fatal(err)
	}
	changed := before.DeepCopy()
	changed.Data["ca.crt"] = string(pemOf(newIssuer(t).cert))
	if err := shared.admin.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error {
		var now corev1.ConfigMap
		err := shared.admin.Get(t.Context(), key, &now)
		if err == nil && now.Data["ca.crt"] != before.Data["ca.crt"] {
			err = errors.New("the CA of somebody else is published")
		}
		return err
	})
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// asPlugin asks a server as bcsnet-ipam does, with the token of a node, for so long.
func asPlugin(t *testing.T, w *world, patience time.Duration, server string) error {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	files := cni.Files{CA: w.bundle, Token: []byte(w.node)}
	c := &cni.Client{
		Access: func() (cni.Access, error) { return files.Access([]*url.URL{u}, serverName) }, Now: time.Now,
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	return c.Do(ctx, cni.Call{
		Method: "GET", Path: prefix, RequestID: "r", Once: true, Accept: func(json.RawMessage) error { return nil },
	})
}

// thief returns a server of the attacker's, with TLS or not, and what returns the tokens that it was shown.
func thief(t *testing.T, secure bool, answer http.HandlerFunc) (s *httptest.Server, tokens func() string) {
	t.Helper()
	var mu sync.Mutex
	var seen strings.Builder
	s = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen.WriteString(r.Header.Get("Authorization"))
		mu.Unlock()
		answer(rw, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s, func() string {
		mu.Lock()
		defer mu.Unlock()
		return seen.String()
	}
}

// The plugin shows its token over TLS alone, and goes nowhere that somebody sends it.
func redirecting(t *testing.T, w *world) {
	target, tokens := thief(t, false, func(http.ResponseWriter, *http.Request) {})
	if err := asPlugin(t, w, time.Second, target.URL); err == nil {
		t.Error("an empty answer by plain HTTP counts")
	}
	from, more := thief(t, false, func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, target.URL, http.StatusTemporaryRedirect)
	})
	if err := asPlugin(t, w, time.Second, from.URL); err == nil {
		t.Error("a redirect counts")
	}
	if got := tokens() + more(); got != "" {
		t.Errorf("the token was shown: %.20s", got)
	}
}

// Whoever answers in place of a replica, without its certificate, gets no request.
func impostor(t *testing.T, w *world) {
	s, tokens := thief(t, true, func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write([]byte(`{"code":0,"message":"","result":true,"data":{},"request_id":"r"}`)) // to nobody
	})
	if err := asPlugin(t, w, time.Second, s.URL); err == nil || tokens() != "" {
		t.Errorf("%v, the token was shown: %t", err, tokens() != "")
	}
	if err := asPlugin(t, w, time.Minute, strings.Replace(shared.shipped.URL, "http:", "https:", 1)); err != nil {
		t.Errorf("a replica: %v", err)
	}
}
