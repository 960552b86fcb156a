package attacks_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

func certificates() []attack {
	return []attack{
		{"certificate_of_another_CA", foreignCertificate}, {"expired_certificate", expiredCertificate},
		{"serving_certificate_as_a_client", servingCertificate}, {"certificate_of_our_own_CA", ownCA},
		{"kubelet_beyond_its_node", kubeletElsewhere},
	}
}

const admins = "system:masters"

// issuer is a CA of the test's.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newIssuer makes a CA that nobody trusts.
func newIssuer(t *testing.T) issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := templateOf("attacker's CA")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{cert, key}
}

func templateOf(name string, groups ...string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name, Organization: groups},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
}

// issue signs a certificate.
func (i issuer) issue(t *testing.T, template *x509.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.cert, key.Public(), i.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, i.cert.Raw}, PrivateKey: key}
}

// ourCA returns the CA of the allocator's port, as who may read the Secret has it.
func ourCA(t *testing.T) issuer {
	t.Helper()
	o := secret(t)
	pair, err := tls.X509KeyPair(o.Data["tls.crt"], o.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	return issuer{pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)}
}

func secret(t *testing.T) *corev1.Secret {
	t.Helper()
	var o corev1.Secret
	if err := shared.admin.Get(t.Context(), client.ObjectKey{
		Namespace: controlplane.SystemNamespace, Name: "bcsnet-controller-ca",
	}, &o); err != nil {
		t.Fatal(err)
	}
	return &o
}

// ofCluster returns a client certificate of the cluster's CA.
func ofCluster(t *testing.T, end time.Time, user string, groups ...string) *tls.Certificate {
	t.Helper()
	c, err := shared.cluster.ClientCertificate(end, user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

func show(c *tls.Certificate) ask { return ask{cert: c, method: "GET", path: prefix} }

func foreignCertificate(t *testing.T, w *world) {
	for name, c := range map[string]*tls.Certificate{
		"an administrator": newIssuer(t).issue(t, templateOf("admin", admins)),
		"a kubelet":        newIssuer(t).issue(t, templateOf("system:node:"+nodeTheirs, "system:nodes")),
	} {
		w.send(t, show(c)).refused(t, name, ipam.ReasonUnauthenticated)
	}
}

// The same certificate counts while it has not ended.
func expiredCertificate(t *testing.T, w *world) {
	good := ofCluster(t, time.Now().Add(time.Hour), "admin", admins)
	controlplane.Eventually(t, func() error { // the client CA may not have been read yet
		h, err := w.trySend(t.Context(), show(good))
		if err == nil && h.Code != 0 {
			err = errors.New(h.text)
		}
		return err
	})
	w.send(t, show(ofCluster(t, time.Now().Add(-time.Minute), "admin", admins))).
		refused(t, "one that has ended", ipam.ReasonUnauthenticated)
}

// The API server's own certificate is one of the cluster's CA, and for servers.
func servingCertificate(t *testing.T, w *world) {
	dir := filepath.Join(shared.cluster.Dir, "pki")
	c, err := tls.LoadX509KeyPair(filepath.Join(dir, "serving.crt"), filepath.Join(dir, "serving.key"))
	if err != nil {
		t.Fatal(err)
	}
	w.send(t, show(&c)).refused(t, "a server's certificate", ipam.ReasonUnauthenticated)
}

// The CA of the port signs for replicas. Who it names is no user, whatever the name.
func ownCA(t *testing.T, w *world) {
	named := templateOf("admin", admins)
	replica := templateOf("admin", admins)
	replica.DNSNames = []string{serverName, "replica." + serverName}
	for name, template := range map[string]*x509.Certificate{"a user": named, "a replica": replica} {
		w.send(t, show(ourCA(t).issue(t, template))).refused(t, name, ipam.ReasonUnauthenticated)
	}
}

func kubeletElsewhere(t *testing.T, w *world) {
	end := time.Now().Add(time.Hour)
	for name, c := range map[string]*tls.Certificate{
		"a kubelet":             ofCluster(t, end, "system:node:"+nodeMine, "system:nodes"),
		"one that may do all":   ofCluster(t, end, "system:node:"+nodeMine, "system:nodes", admins),
		"one without a name":    ofCluster(t, end, "system:node:", "system:nodes", admins),
		"one by another name":   ofCluster(t, end, "mallory", "system:nodes", admins),
		"one of no known node":  ofCluster(t, end, "system:node:node-nowhere", "system:nodes", admins),
		"one of the name alone": ofCluster(t, end, "system:node:"+nodeTheirs),
	} {
		for _, call := range []string{"ADD", "DEL", "GC", "host release"} {
			a := w.calls()[call]
			a.cert = c
			w.send(t, a).refused(t, name+": "+call, ipam.ReasonNotPermitted)
		}
	}
}
