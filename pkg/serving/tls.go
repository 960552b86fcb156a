package serving

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// errNone is the error before the Secret was read for the first time.
var errNone = errors.New("this replica has no certificate yet: the Secret of the CA has not been read")

// ServerConfig returns the TLS configuration of the allocator's port. Clients may send a certificate, which others
// verify.
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

// ClientConfig returns the TLS configuration for calls to other replicas: both sides verify certificates of the CA.
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

// IsReplica reports whether the caller of a connection is a replica: its certificate comes from the CA and has the name
// of replicas.
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

// serviceName is the name of the controller's Service.
const serviceName = "bcsnet-controller"

// Names has the names in the certificates of replicas.
type Names struct {
	// Namespace is the controller's namespace.
	Namespace string
}

// Service returns the name that clients verify for any replica, whatever IP they dial.
func (n Names) Service() string { return serviceName + "." + n.Namespace + ".svc" }

// Replica returns the name that replicas verify for each other. Only certificates of the own CA contain it: a caller
// with such a certificate is a replica.
func (n Names) Replica() string { return "replica." + n.Service() }
