package serving

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// behind bounds the lag of a client's clock: certificates are valid from that long before they were made.
	behind = 24 * time.Hour
	// authorityLife is the lifetime of a CA, and authorityRenew the time before its end at which the next one is made.
	authorityLife, authorityRenew = 10 * 365 * 24 * time.Hour, 365 * 24 * time.Hour
	// leafLife is the lifetime of a replica's certificate, and leafRenew the age at which a new one is made: the clock
	// of a client may be six days ahead.
	leafLife, leafRenew = 7 * 24 * time.Hour, 24 * time.Hour
)

// authority is a CA.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority creates a CA. Its name contains the time, so that people can tell two published CAs apart.
func newAuthority(now time.Time) (a authority, err error) {
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return a, err
	}
	name := pkix.Name{CommonName: "bcsnet-controller CA of " + now.UTC().Format(time.RFC3339)}
	template, err := template(name, now, authorityLife)
	if err != nil {
		return a, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		return a, err
	}
	a.cert, err = x509.ParseCertificate(der)
	return a, err
}

// shared derives a secret from the key. The secret does not reveal the key.
func (a authority) shared() ([]byte, error) {
	key, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, key, nil, "bcsnet: what replicas share", sha256.Size)
}

// leaf creates the certificate of a replica, with a new key.
func (a authority) leaf(names Names, replica string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := template(pkix.Name{CommonName: replica}, now, leafLife)
	if err != nil {
		return nil, err
	}
	template.DNSNames = []string{names.Service(), names.Replica()}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}

// template returns the fields that all certificates have in common.
func template(name pkix.Name, now time.Time, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), Subject: name, NotBefore: now.Add(-behind).UTC(),
		NotAfter: now.Add(life).UTC(),
	}, nil
}

// encode returns certificate and key in PEM.
func (a authority) encode() (certificate, key []byte, err error) {
	key, err = keyutil.MarshalPrivateKeyToPEM(a.key)
	return encodeCertificates(a.cert), key, err
}

func encodeCertificates(all ...*x509.Certificate) (text []byte) {
	for _, c := range all {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: c.Raw})...)
	}
	return text
}

// parseAuthority parses a CA that can sign: a CA certificate and its private key.
func parseAuthority(certificate, key []byte) (a authority, err error) {
	certificates, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		return a, fmt.Errorf("the certificate cannot be read: %w", err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		return a, fmt.Errorf("the key cannot be read: %w", err)
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	a = authority{certificates[0], private}
	switch {
	case !ok:
		return a, errors.New("the key is not an ECDSA key")
	case !private.PublicKey.Equal(a.cert.PublicKey):
		return a, errors.New("the key does not belong to the certificate")
	case !a.cert.IsCA:
		return a, errors.New("the certificate does not belong to a CA")
	}
	return a, nil
}
