package access

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// certified is a clientCA that has read its CA, with what signs.
type certified struct {
	*clientCA
	signer *x509.Certificate
	key    *ecdsa.PrivateKey
}

// newCertified makes one, with the API server's time.
func newCertified(t *testing.T, now func() time.Time) certified {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := certified{clientCA: newClientCA(nil, now, slog.New(slog.DiscardHandler)), key: key}
	c.signer = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotBefore: now().Add(-time.Hour),
		NotAfter: now().Add(1000 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	c.signer = c.sign(t, c.signer, key)
	pool := x509.NewCertPool()
	pool.AddCert(c.signer)
	c.pool.Store(pool)
	return c
}

// sign signs a certificate with a key.
func (c certified) sign(t *testing.T, template *x509.Certificate, by *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, c.signer, c.key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// of returns the certificate of a user that counts between two times.
func (c certified) of(t *testing.T, from, to time.Time, name string, groups ...string) *x509.Certificate {
	t.Helper()
	return c.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name, Organization: groups}, NotBefore: from, NotAfter: to,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, c.key)
}

// Whether a certificate has ended is judged by the API server's time: the clock of this machine may be days off.
func TestClockOfCertificates(t *testing.T) {
	t.Parallel()
	server := time.Now().Add(72 * time.Hour)
	c := newCertified(t, func() time.Time { return server })
	for name, test := range map[string]struct {
		from, to time.Duration // from the API server's time
		counts   bool
	}{
		"one of now":                 {-time.Hour, time.Hour, true},
		"one that has ended":         {-100 * time.Hour, -time.Hour, false},
		"one that has not begun yet": {time.Hour, 2 * time.Hour, false},
	} {
		chain := []*x509.Certificate{c.of(t, server.Add(test.from), server.Add(test.to), "alice")}
		if who, err := c.identify(chain); (err == nil) != test.counts || test.counts && who.Username != "alice" {
			t.Errorf("%s: %+v %v", name, who, err)
		}
	}
}

// Connections that show the same certificate share one object of it. Each caller has groups of its own all the same.
func TestCertificateOfManyConnections(t *testing.T) {
	t.Parallel()
	c := newCertified(t, time.Now)
	g := &Gate{clients: c.clientCA}
	// Three are parsed into a list that has room for a fourth.
	leaf := c.of(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), "alice", "a", "b", "c")
	leaf.Subject.Organization = slices.Grow(leaf.Subject.Organization, 1)
	r := &http.Request{TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				who, err := g.Identify(r)
				if err != nil || !slices.Equal(who.Groups, []string{"a", "b", "c", "system:authenticated"}) {
					t.Errorf("%+v %v", who, err)
				}
				who.Groups[3] = "changed by who has it" // and by nobody else
			}
		})
	}
	all.Wait()
}

// Names that would write lines of their own into a log, or that a header cannot have, are nobody's.
func TestNamesThatCannotBePrinted(t *testing.T) {
	t.Parallel()
	c := newCertified(t, time.Now)
	for name, counts := range map[string]bool{
		"alice": true, "system:node:n1": true, "J\u00fcrgen \u738b": true, "a b": true, "": false, "a\nb": false, "a\rb": false,
		"a\x00b": false, "a\x1b[2Jb": false, "a\tb": false, "a\u202eb": false, "a\u200bb": false, "a\u2028b": false,
		"a\u0085b": false, "\x7f": false,
	} {
		chain := []*x509.Certificate{c.of(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), name)}
		if who, err := c.identify(chain); (err == nil) != counts || counts && who.Username != name {
			t.Errorf("%q: %v", name, err)
		}
		if name == "" {
			continue
		}
		chain[0] = c.of(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), "alice", "staff", name)
		if _, err := c.identify(chain); (err == nil) != counts {
			t.Errorf("a group %q: %v", name, err)
		}
	}
	if checkNames("a\xffb") == nil {
		t.Error("what is no UTF-8 is a name")
	}
}

// A chain that was refused is refused again without a look, for five seconds. One that counted is looked at again.
func TestRefusedChainsAreRemembered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ahead := time.Duration(0)
		c := newCertified(t, func() time.Time { return time.Now().Add(ahead) })
		chain := []*x509.Certificate{c.of(t, time.Now().Add(time.Hour), time.Now().Add(3*time.Hour), "alice")}
		g := &Gate{clients: c.clientCA}
		r := &http.Request{TLS: &tls.ConnectionState{PeerCertificates: chain}}
		counts := func(want bool, when string) {
			t.Helper()
			if _, err := g.Identify(r); (err == nil) != want {
				t.Errorf("%s: %v", when, err)
			}
		}
		if g.Remembers(r) {
			t.Error("a chain that nobody saw is remembered")
		}
		counts(false, "before it begins")
		ahead = 2 * time.Hour
		counts(false, "right after it was refused")
		if !g.Remembers(r) {
			t.Error("a refused chain is not remembered")
		}
		<-time.After(refused + time.Millisecond)
		if g.Remembers(r) {
			t.Error("a refused chain is remembered for longer")
		}
		counts(true, "later")
		ahead = 4 * time.Hour
		counts(false, "after its end")
	})
}
