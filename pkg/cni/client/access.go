package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net/url"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cni/nodefile"
)

const (
	nodeFile  = "config.json"
	caFile    = "ca.crt"
	tokenFile = "token"
	// maxFile bounds each of these files, in octets.
	maxFile = 1 << 20
)

// Access says how to reach replicas. It is read again for each try, because certificates and tokens may be renewed
// meanwhile.
type Access struct {
	Replicas []*url.URL
	// TLS has the CA and the name of the replicas' certificates; nil if no replica is reached over https.
	TLS *tls.Config
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

// Access returns how to reach the replicas that the node's own configuration names. serverName is the name in their
// certificates; empty for the host of the URL. It returns an error if a replica uses https, and the CA is missing or
// damaged.
func (f Files) Access(replicas []*url.URL, serverName string) (a Access, err error) {
	a = Access{Replicas: replicas, Token: strings.TrimSpace(string(f.Token))}
	for _, u := range replicas {
		if u.Scheme == "https" {
			a.TLS, err = f.tlsConfig(serverName)
			return a, err
		}
	}
	return a, nil
}

func (f Files) tlsConfig(serverName string) (*tls.Config, error) {
	if len(f.CA) == 0 {
		return nil, errors.New("replicas are reached over https, and there is no " + caFile + " to know them by")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(f.CA) {
		return nil, errors.New(caFile + " has no certificate in PEM")
	}
	return &tls.Config{
		RootCAs: pool, ServerName: serverName, MinVersion: tls.VersionTLS12,
		// The default's ML-KEM takes a tenth of a call's processor time. It would keep recorded traffic secret from the
		// computers of later years; by then, the token, the only secret here, has long expired.
		CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521},
	}, nil
}
