package http_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// secureGroup is a group whose replicas call each other by TLS, and the client of it.
type secureGroup struct {
	*group
	leader, follower *instance
}

func newSecureGroup(t *testing.T, change func(*controller.Options)) secureGroup {
	t.Helper()
	g := secureGroup{group: newGroup(t)}
	start := func() *instance {
		return startFor(t, account(t, shared.cluster), func(o *controller.Options) {
			g.options(o)
			o.AdvertiseAddress = "https://" + o.HTTPBindAddress
			if change != nil {
				change(o)
			}
		})
	}
	g.leader = start()
	leads(t, g.leader.caller())
	g.follower = start()
	forwards(t, g.follower.caller(), idOf(t, g.leader.caller()))
	return g
}

// client returns what calls replicas by the CA that is published in the group's namespace.
func (g secureGroup) client() *http.Client {
	g.t.Helper()
	pool := x509.NewCertPool()
	controlplane.Eventually(g.t, func() error {
		var published corev1.ConfigMap
		err := shared.admin.Get(g.t.Context(), client.ObjectKey{Namespace: g.Namespace, Name: "bcsnet-controller-ca"},
			&published)
		if err == nil && !pool.AppendCertsFromPEM([]byte(published.Data["ca.crt"])) {
			err = errors.New("no certificate is published")
		}
		return err
	})
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: pool, ServerName: "bcsnet-controller." + g.Namespace + ".svc", MinVersion: tls.VersionTLS12,
	}}}
}

// A follower has the leader answer by TLS, in which both know each other by the certificates of their CA.
func TestForwardByTLS(t *testing.T) {
	t.Parallel()
	g := newSecureGroup(t, nil)
	l := idOf(t, g.leader.caller())
	s := newSite(t)
	s.pool(5, nil)
	s.knownTo(g.leader.caller(), g.follower.caller())
	s.call = g.follower.caller()
	body := object{"host": s.Host, "owner": s.owner("vm")}
	controlplane.Eventually(t, func() error { // a leader that takes long is not waited for
		if a := s.add(body); a.Header.Get("Bcsnet-Answered-By") != l || a.Code != 0 {
			return fmt.Errorf("not the leader's answer: %s", a.Raw)
		}
		return nil
	})
	s.call.waitMetric(t, `bcsnet_forwarded_total{result="answered"}`, "1")
	if g.leader.Log.Line("level=WARN", "certificates") != "" {
		t.Errorf("the certificates are not kept:\n%s", g.leader.Log)
	}
}

// The allocator's port answers HTTPS, beside plain HTTP on its own machine.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	g := newSecureGroup(t, nil)
	h := g.client()
	for _, i := range []*instance{g.leader, g.follower} {
		at, err := url.Parse(i.URL)
		if err != nil {
			t.Fatal(err)
		}
		controlplane.Eventually(t, func() error { // the follower reads the Secret by itself
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+at.Host+"/readyz", nil)
			if err != nil {
				return err
			}
			resp, err := h.Do(r)
			if err != nil {
				return err
			}
			if resp.StatusCode != http.StatusOK {
				err = errors.New(resp.Status)
			}
			return errors.Join(err, resp.Body.Close())
		})
	}
	// One that cannot be trusted is not asked: the follower answers by itself.
	other := newSecureGroup(t, nil)
	g.introduce(other.group)
	g.takeLease(idOf(t, other.leader.caller()), strings.Replace(other.leader.URL, "http:", "https:", 1))
	s := newSite(t)
	s.pool(5, nil)
	s.call = g.follower.caller()
	s.knownTo(s.call)
	controlplane.Eventually(t, func() error {
		if i := s.call.info(t); i.Leader == nil || i.Leader.ID != idOf(t, other.leader.caller()) {
			return errors.New("the Lease is not seen yet")
		}
		return nil
	})
	s.add(object{"host": s.Host, "owner": s.owner("vm")}).answeredBy(t, idOf(t, s.call)).done(t)
}
