// Package replica names the replicas of the controller to each other and to people.
package replica

import (
	"cmp"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// Identity identifies one life of a controller.
type Identity struct {
	// Name is the name of the machine or pod, without "_".
	Name string
	// Life distinguishes the lives of one name. It is short and valid in object names.
	Life string
	// URL is the URL by which other replicas reach it; empty if they cannot.
	URL string
}

// New returns the identity of a life that begins now. The URL must come from ParseURL.
func New(name, url string) Identity {
	return Identity{
		Name: cmp.Or(strings.ReplaceAll(name, "_", "-"), "unnamed"),
		Life: strings.ToLower(rand.Text()[:10]),
		URL:  url,
	}
}

// Parse parses the holder of a Lease: NAME_LIFE_URL. Missing parts are empty, and a URL that must not be called counts
// as missing: other programs may hold the Lease, too.
func Parse(holder string) Identity {
	name, rest, _ := strings.Cut(holder, "_")
	life, at, _ := strings.Cut(rest, "_")
	if _, err := ParseURL(at); err != nil {
		at = ""
	}
	return Identity{Name: name, Life: life, URL: at}
}

// ID returns the identity without the URL.
func (i Identity) ID() string {
	if i.Life == "" {
		return i.Name
	}
	return i.Name + "_" + i.Life
}

// Holder returns the identity as the holder of a Lease. The URL is part of it, so that the leader and its URL change in
// one write.
func (i Identity) Holder() string {
	if i.URL == "" {
		return i.ID()
	}
	return i.ID() + "_" + i.URL
}

// ParseURL parses the URL of a replica: http or https, a host, an optional port, and nothing else.
func ParseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("it cannot be read")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("it does not begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("it names no host")
	case strings.HasSuffix(u.Host, ":"):
		return nil, errors.New("the port is missing")
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && a.IsUnspecified() {
		return nil, fmt.Errorf("%s is the address of no machine", a)
	}
	if bare := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String(); s != bare {
		return nil, fmt.Errorf("it has more than a scheme, host and port: %s", bare)
	}
	return u, nil
}

// Loopback reports whether a URL leads to the caller's own machine.
func Loopback(u *url.URL) bool {
	a, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// secretLength is the length of the secret that two replicas share, in bytes.
const secretLength = 32

// Key is the key of one life of a controller. Its public half need not be kept secret. The owner of another key shares
// a secret with this one that nobody else can derive: it follows from either key and the other's public half.
type Key struct{ private *ecdh.PrivateKey }

// NewKey returns a random key.
func NewKey() (Key, error) {
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	return Key{private}, err
}

// Public returns the public half, as text.
func (k Key) Public() string {
	return base64.RawStdEncoding.EncodeToString(k.private.PublicKey().Bytes())
}

// Share returns the secret shared with the replica that has this public half.
func (k Key) Share(public string) ([]byte, error) {
	text, err := base64.RawStdEncoding.DecodeString(public)
	if err != nil {
		return nil, fmt.Errorf("the public key of a replica cannot be read: %w", err)
	}
	other, err := ecdh.X25519().NewPublicKey(text)
	if err != nil {
		return nil, fmt.Errorf("the public key of a replica cannot be used: %w", err)
	}
	common, err := k.private.ECDH(other)
	if err != nil {
		return nil, fmt.Errorf("the public key of a replica cannot be used: %w", err)
	}
	return hkdf.Key(sha256.New, common, nil, "bcsnet: a replica forwards a request", secretLength)
}
