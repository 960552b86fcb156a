package serving

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
)

// announced is the time for which a CA is published before it signs: clients read files that others renew for them.
const announced = time.Hour

// trust is the content of the Secret: the CA that signs, the one that will sign next, and those that have signed.
type trust struct {
	signs authority
	next  *authority
	// nextFrom is the time from which next signs; zero until next is published.
	nextFrom time.Time
	// old have signed certificates that are valid until oldUntil at the latest.
	old      []*x509.Certificate
	oldUntil time.Time
}

// Keys of the Secret. The signing CA has the keys of Secrets of type kubernetes.io/tls.
const (
	keySigns, keySignsKey = "tls.crt", "tls.key"
	keyNext, keyNextKey   = "next.crt", "next.key"
	keyNextFrom           = "next.from"
	keyOld, keyOldUntil   = "old.crt", "old.until"
	// keyBundle is the ConfigMap's key for all certificates that clients trust.
	keyBundle = "ca.crt"
)

func newTrust(now time.Time) (t trust, err error) {
	t.signs, err = newAuthority(now)
	return t, err
}

// certificates returns all CAs that clients must trust.
func (t trust) certificates() []*x509.Certificate {
	all := []*x509.Certificate{t.signs.cert}
	if t.next != nil {
		all = append(all, t.next.cert)
	}
	return append(all, t.old...)
}

func (t trust) bundle() []byte { return encodeCertificates(t.certificates()...) }

func (t trust) pool() *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range t.certificates() {
		p.AddCert(c)
	}
	return p
}

func (t trust) has(c *x509.Certificate) bool {
	for _, known := range t.certificates() {
		if known.Equal(c) {
			return true
		}
	}
	return false
}

// rotate returns the trust to write at a time; changed is false if nothing has to be written. A new CA is created in
// time before the signing one expires, or when asked is true. It is published from then on, and signs after published
// has been true for an hour. A former signing CA is published until the last of its certificates has expired.
func (t trust) rotate(now time.Time, asked, published bool) (_ trust, changed bool, err error) {
	if t.next == nil && (asked || now.After(t.signs.cert.NotAfter.Add(-authorityRenew))) {
		next, err := newAuthority(now)
		if err != nil {
			return t, false, err
		}
		t.next, t.nextFrom, changed = &next, time.Time{}, true
		if now.After(t.signs.cert.NotAfter) { // nobody trusts it any more
			t.nextFrom = now
		}
		published = false
	}
	if t.next != nil && t.nextFrom.IsZero() && published {
		t.nextFrom, changed = now.Add(announced), true
	}
	if t.next != nil && !t.nextFrom.IsZero() && !now.Before(t.nextFrom) {
		t.old, t.oldUntil = append(slices.Clip(t.old), t.signs.cert), now.Add(leafLife)
		t.signs, t.next, t.nextFrom, changed = *t.next, nil, time.Time{}, true
	}
	if len(t.old) > 0 && now.After(t.oldUntil) {
		t.old, t.oldUntil, changed = nil, time.Time{}, true
	}
	return t, changed, nil
}

// adopt returns the trust of a Secret that was created again, with an added CA that issued certificates in use.
func (t trust) adopt(c *x509.Certificate, now time.Time) trust {
	t.old, t.oldUntil = append(slices.Clip(t.old), c), now.Add(leafLife)
	return t
}

func (t trust) encode() (map[string][]byte, error) {
	var data = map[string][]byte{}
	var err error
	if data[keySigns], data[keySignsKey], err = t.signs.encode(); err != nil {
		return nil, err
	}
	if t.next != nil {
		if data[keyNext], data[keyNextKey], err = t.next.encode(); err != nil {
			return nil, err
		}
		if !t.nextFrom.IsZero() {
			data[keyNextFrom] = []byte(t.nextFrom.UTC().Format(time.RFC3339))
		}
	}
	if len(t.old) > 0 {
		data[keyOld] = encodeCertificates(t.old...)
		data[keyOldUntil] = []byte(t.oldUntil.UTC().Format(time.RFC3339))
	}
	return data, nil
}

// parseTrust parses a Secret. The error names the damaged key.
func parseTrust(data map[string][]byte) (t trust, err error) {
	if t.signs, err = parseAuthority(data[keySigns], data[keySignsKey]); err != nil {
		return t, fmt.Errorf("%s and %s: %w", keySigns, keySignsKey, err)
	}
	if len(data[keyNext]) > 0 {
		next, err := parseAuthority(data[keyNext], data[keyNextKey])
		if err != nil {
			return t, fmt.Errorf("%s and %s: %w", keyNext, keyNextKey, err)
		}
		t.next = &next
		if t.nextFrom, err = parseTime(data[keyNextFrom]); err != nil {
			return t, fmt.Errorf("%s: %w", keyNextFrom, err)
		}
	}
	if len(data[keyOld]) > 0 {
		if t.old, err = cert.ParseCertsPEM(data[keyOld]); err != nil {
			return t, fmt.Errorf("%s: %w", keyOld, err)
		}
		if t.oldUntil, err = parseTime(data[keyOldUntil]); err == nil && t.oldUntil.IsZero() {
			err = errors.New("it is missing")
		}
		if err != nil {
			return t, fmt.Errorf("%s: %w", keyOldUntil, err)
		}
	}
	return t, nil
}

func parseTime(text []byte) (time.Time, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, string(bytes.TrimSpace(text)))
}
