package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

const certificateLife = 365 * 24 * time.Hour

// pki is a certificate authority, and the directory of the components' certificates.
type pki struct {
	dir   string
	ca    *x509.Certificate
	key   *ecdsa.PrivateKey
	caPEM []byte
}

// keyPair is a certificate and its key, both in PEM.
type keyPair struct{ cert, key []byte }

// newPKI creates an authority, the serving certificate of all components (serving.crt, serving.key) for loopback and an
// address, and the key that signs ServiceAccount tokens (sa.key).
func newPKI(dir string, at netip.Addr) (*pki, error) {
	p := &pki{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	template := certificate(pkix.Name{CommonName: "controlplane-ca"})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, p.key.Public(), p.key)
	if err != nil {
		return nil, err
	}
	if p.ca, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	p.caPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})

	serving, err := p.serving(at)
	if err != nil {
		return nil, err
	}
	saKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	saPEM, err := encodeKey(saKey)
	if err != nil {
		return nil, err
	}
	return p, errors.Join(
		p.write("ca.crt", p.caPEM),
		p.write("serving.crt", serving.cert),
		p.write("serving.key", serving.key),
		p.write("sa.key", saPEM),
	)
}

// client issues a client certificate. Kubernetes takes the common name as the user, the organization as a group.
func (p *pki) client(user string, groups ...string) (keyPair, error) {
	return p.clientUntil(time.Now().Add(certificateLife), user, groups...)
}

// clientUntil issues a client certificate that expires at end.
func (p *pki) clientUntil(end time.Time, user string, groups ...string) (keyPair, error) {
	template := certificate(pkix.Name{CommonName: user, Organization: groups})
	template.NotAfter = end
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return p.issue(template)
}

func (p *pki) serving(at netip.Addr) (keyPair, error) {
	template := certificate(pkix.Name{CommonName: "controlplane"})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{loopback.AsSlice(), at.AsSlice()}
	return p.issue(template)
}

func (p *pki) issue(template *x509.Certificate) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, p.ca, key.Public(), p.key)
	if err != nil {
		return keyPair{}, err
	}
	keyPEM, err := encodeKey(key)
	return keyPair{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: keyPEM}, err
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

func (p *pki) write(name string, data []byte) error { return os.WriteFile(p.path(name), data, 0o600) }

func certificate(subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		Subject:   subject,
		NotBefore: time.Now().Add(-time.Hour), // clocks of containers differ
		NotAfter:  time.Now().Add(certificateLife),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
