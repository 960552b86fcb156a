package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	nodeFile  = "config.json"
	caFile    = "ca.crt"
	tokenFile = "token"
	// maxFile bounds each of these files, in octets.
	maxFile = 1 << 20
	// dialTimeout bounds how long one replica may take to take a connection: the next one may be well.
	dialTimeout = 2 * time.Second
)

// Access is how replicas are reached. It is read anew at each try: certificates and tokens are renewed meanwhile.
type Access struct {
	Replicas []*url.URL
	// ServerName is the name in the certificates; empty for the host of the URL.
	ServerName string
	// CA has the certificates that sign those of replicas, in PEM; needed for https alone.
	CA []byte
	// Token goes with requests over https alone; empty for none.
	Token string
}

// ReadFile returns the content of a file of the node's configuration; nil where there is none.
func ReadFile(dir, name string) ([]byte, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	case len(text) > maxFile:
		return nil, fmt.Errorf("%s has more than %d octets", f.Name(), maxFile)
	}
	return text, nil
}

// NodeFile returns the text of config.json; nil where there is none.
func NodeFile(dir string) ([]byte, error) { return ReadFile(dir, nodeFile) }

// Credentials returns an Access with what the node's directory has of CA and token.
func Credentials(dir string) (a Access, err error) {
	if a.CA, err = ReadFile(dir, caFile); err != nil {
		return a, err
	}
	token, err := ReadFile(dir, tokenFile)
	a.Token = strings.TrimSpace(string(token))
	return a, err
}

// Check returns an error where the replicas cannot be reached by what the node has: one is reached over https, and
// the CA is missing or damaged.
func (a Access) Check() error {
	for _, u := range a.Replicas {
		if u.Scheme == "https" {
			_, err := a.tlsConfig()
			return err
		}
	}
	return nil
}

// Secure reports whether a replica is reached over https.
func (a Access) Secure() bool {
	for _, u := range a.Replicas {
		if u.Scheme == "https" {
			return true
		}
	}
	return false
}

func (a Access) tlsConfig() (*tls.Config, error) {
	if len(a.CA) == 0 {
		return nil, errors.New("replicas are reached over https, and there is no " + caFile + " to know them by")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(a.CA) {
		return nil, errors.New(caFile + " has no certificate in PEM")
	}
	return &tls.Config{RootCAs: pool, ServerName: a.ServerName, MinVersion: tls.VersionTLS12}, nil
}

// transport returns what carries requests. It goes by no proxy of the runtime's environment, and one connection is
// enough.
func (a Access) transport() (*http.Transport, error) {
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout, MaxIdleConnsPerHost: 1, MaxResponseHeaderBytes: 64 << 10,
		Protocols: &http.Protocols{},
	}
	t.Protocols.SetHTTP1(true)
	if !a.Secure() {
		return t, nil
	}
	var err error
	t.TLSClientConfig, err = a.tlsConfig()
	return t, err
}
