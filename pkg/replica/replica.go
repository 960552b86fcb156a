// Package replica names the replicas of the controller to each other and to people.
package replica

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// Identity is one life of a controller.
type Identity struct {
	// Name is that of the machine or pod, without "_".
	Name string
	// Life distinguishes the lives of one name; it fits into the name of an object.
	Life string
	// URL is where other replicas reach it; empty when nowhere.
	URL string
}

// New returns the identity of a life that begins now. The URL has been through ParseURL.
func New(name, url string) Identity {
	return Identity{
		Name: cmp.Or(strings.ReplaceAll(name, "_", "-"), "unnamed"),
		Life: strings.ToLower(rand.Text()[:10]),
		URL:  url,
	}
}

// Parse reads the holder of a Lease: NAME_LIFE_URL. What is missing stays empty, and a URL that nobody should
// call counts as missing: other programs may hold the Lease, too.
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

// Holder returns the identity as the holder of a Lease. The URL is part of it, so that who leads and where it is
// reached change in one write.
func (i Identity) Holder() string {
	if i.URL == "" {
		return i.ID()
	}
	return i.ID() + "_" + i.URL
}

// ParseURL parses the URL of a replica: http or https, a host, perhaps a port, and nothing else.
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

// Loopback reports whether a URL leads to the machine that calls it.
func Loopback(u *url.URL) bool {
	a, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && a.Unmap().IsLoopback()
}
