package ui

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// lookEvery is the interval of reading the certificate's files.
const lookEvery = 10 * time.Second

// keyPair is the certificate of the pages. It is read again when its files change. Cookies are sealed by a key derived
// from its private key, which all replicas have and nobody else.
type keyPair struct {
	certFile, keyFile string
	// warn gets the error of reading changed files; the previous certificate stays in use.
	warn func(format string, args ...any)

	mu     sync.Mutex
	looked time.Time
	text   []byte // of both files
	cert   *tls.Certificate
	// seals has the seals of the present and the previous private key.
	seals []cipher.AEAD
}

func newKeyPair(certFile, keyFile string, warn func(string, ...any)) (*keyPair, error) {
	k := &keyPair{certFile: certFile, keyFile: keyFile, warn: warn}
	k.looked = time.Now()
	return k, k.read()
}

// read reads the files, and uses them if they have changed and fit each other.
func (k *keyPair) read() error {
	certificate, err := os.ReadFile(k.certFile)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(k.keyFile)
	if err != nil {
		return err
	}
	text := bytes.Join([][]byte{certificate, key}, []byte{0})
	if bytes.Equal(text, k.text) {
		return nil
	}
	cert, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", k.certFile, k.keyFile, err)
	}
	seal, err := sealBy(cert)
	if err != nil {
		return err
	}
	k.text, k.cert = text, &cert
	k.seals = append([]cipher.AEAD{seal}, k.seals...)
	k.seals = k.seals[:min(len(k.seals), 2)]
	return nil
}

// sealBy derives the seal of cookies from a certificate's private key. The key cannot be derived from the seal.
func sealBy(cert tls.Certificate) (cipher.AEAD, error) {
	der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, der, nil, "bcsnet: cookies of the pages", sha256.Size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// newest returns the present certificate and seals. It reads the files again every lookEvery.
func (k *keyPair) newest() (*tls.Certificate, []cipher.AEAD) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.looked) > lookEvery {
		k.looked = time.Now()
		if err := k.read(); err != nil {
			k.warn("the certificate of before is shown: %v", err)
		}
	}
	return k.cert, k.seals
}

// tls returns the TLS of the pages.
func (k *keyPair) tls() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			cert, _ := k.newest()
			return cert, nil
		},
	}
}

// names reports whether the certificate is valid for a host.
func (k *keyPair) names(host string) bool {
	cert, _ := k.newest()
	return cert.Leaf.VerifyHostname(host) == nil
}

// seal encrypts what a cookie holds.
func (k *keyPair) seal(text []byte) string {
	_, seals := k.newest()
	sealed := seals[0].Seal(nil, nil, text, []byte(sessionCookie)) //nolint:gosec // it draws its nonces itself
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// open returns the content of a cookie that was sealed by the present or the previous key.
func (k *keyPair) open(value string) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return nil, err
	}
	_, seals := k.newest()
	for _, seal := range seals {
		if text, err := seal.Open(nil, nil, sealed, []byte(sessionCookie)); err == nil {
			return text, nil
		}
	}
	return nil, errors.New("the cookie was sealed by another key")
}
