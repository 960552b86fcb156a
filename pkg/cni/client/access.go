package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cni/nodefile"
)

const (
	nodeFile  = "config.json"
	caFile    = "ca.crt"
	tokenFile = "token"
	// maxFile bounds each of these files, in octets.
	maxFile = 1 << 20
	// dialTimeout bounds the time in which one replica must accept a connection: the next one may work.
	dialTimeout = 2 * time.Second
)

// Access says how to reach replicas. It is read again for each try, because certificates and tokens may be renewed
// meanwhile.
type Access struct {
	Replicas []*url.URL
	// ServerName is the name in the certificates; empty for the host of the URL.
	ServerName string
	// CA contains the certificates of the CA that signs the replicas' certificates, in PEM. Only https needs them.
	CA []byte
	// Token is sent only over https; empty for none.
	Token string
}

// Files are the contents of the files in the node's directory. Each is nil if there is no such file.
type Files struct{ Config, CA, Token []byte }

// ReadFiles reads the node's directory. The directory and all files in it must belong to root.
func ReadFiles(dir string) (f Files, err error) {
	d, err := nodefile.OpenRoots(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	defer d.Close()
	for name, text := range map[string]*[]byte{nodeFile: &f.Config, caFile: &f.CA, tokenFile: &f.Token} {
		var bad error
		*text, bad = d.Read(name, maxFile)
		err = errors.Join(err, bad)
	}
	return f, err
}

// Access returns how to reach the replicas that the node's own configuration names.
func (f Files) Access(replicas []*url.URL, serverName string) Access {
	return Access{Replicas: replicas, ServerName: serverName, CA: f.CA, Token: strings.TrimSpace(string(f.Token))}
}

// Check returns an error if a replica uses https, and the CA is missing or damaged.
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

// transport returns the HTTP transport. It ignores the proxies of the runtime's environment and keeps at most one
// connection.
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
