package serving

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// errNone is for the moments before the first look at the Secret has come back.
var errNone = errors.New("this replica has no certificate yet: the Secret of the CA has not been read")

// ServerConfig returns the TLS of the allocator's port. Clients may show a certificate; who they are is for others to
// find out.
func (c *Certificates) ServerConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, ClientAuth: tls.RequestClientCert,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if c.Mounted != nil && hello.ServerName != c.names.Replica() {
				return c.Mounted(hello)
			}
			return c.leaf()
		},
	}
}

func (c *Certificates) leaf() (*tls.Certificate, error) {
	if s := c.current.Load(); s != nil {
		return s.leaf, nil
	}
	return nil, errNone
}

// ClientConfig returns the TLS by which this replica calls others: they know each other by certificates of the CA.
func (c *Certificates) ClientConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: c.names.Replica(),
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies, with the CA of the moment
		VerifyConnection: func(state tls.ConnectionState) error {
			return c.verify(state, x509.ExtKeyUsageServerAuth)
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.leaf() },
	}
}

// IsReplica reports whether who calls by a connection is a replica: it has shown a certificate of the CA that says so.
func (c *Certificates) IsReplica(state *tls.ConnectionState) bool {
	return state != nil && c.verify(*state, x509.ExtKeyUsageClientAuth) == nil
}

// verify returns an error unless the other side is a replica.
func (c *Certificates) verify(state tls.ConnectionState, usage x509.ExtKeyUsage) error {
	s := c.current.Load()
	switch {
	case s == nil:
		return errNone
	case len(state.PeerCertificates) == 0:
		return errors.New("the other side shows no certificate")
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		DNSName: c.names.Replica(), Roots: s.pool, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: c.Now(),
	})
	return err
}
