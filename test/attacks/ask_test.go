package attacks_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/inprocess"
)

const prefix = wire.Prefix

// object is a JSON object as an attacker writes it.
type object = map[string]any

// with returns a copy of a body with more fields, in pairs.
func with(body object, fields ...any) object {
	out := maps.Clone(body)
	for i := 0; i < len(fields); i += 2 {
		out[fields[i].(string)] = fields[i+1]
	}
	return out
}

// ask is one request.
type ask struct {
	// to is whom it goes to; nil for the shipped replica.
	to *inprocess.Controller
	// token and cert are what the caller shows over TLS.
	token string
	cert  *tls.Certificate
	// plain sends it by plain HTTP.
	plain bool
	// source is the loopback address that it comes from; empty for 127.0.0.1.
	source string
	// dial connects to the replica; nil for a connection on this machine.
	dial         func(context.Context, *inprocess.Controller) (net.Conn, error)
	method, path string
	// body is text, or anything that becomes JSON; nil for none.
	body any
	// headers come in pairs.
	headers []string
	// host is the name by which the server is called; empty for the usual one.
	host string
}

// elsewhere makes a request by plain HTTP one of another machine: it comes by way of a proxy at an address of its own.
// Without root no other source than loopback exists on a machine that runs tests; byEachWay has others.
func (a ask) elsewhere(source string) ask {
	a.plain, a.source, a.headers = true, source, append(a.headers, "Via", "1.1 proxy")
	return a
}

// heard is an answer.
type heard struct {
	status int
	wire.Envelope
	text   string
	header http.Header
}

// send sends a request on a connection of its own.
func (w *world) send(t *testing.T, a ask) heard {
	t.Helper()
	h, err := w.trySend(t.Context(), a)
	if err != nil {
		t.Fatalf("%s %s: %v", a.method, a.path, err)
	}
	return h
}

// trySend is send for what may get no answer.
func (w *world) trySend(ctx context.Context, a ask) (h heard, err error) {
	to := a.to
	if to == nil {
		to = shared.shipped
	}
	var body io.Reader
	switch b := a.body.(type) {
	case nil:
	case string:
		body = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return h, err
		}
		body = strings.NewReader(string(text))
	}
	base := to.URL
	if !a.plain {
		base = strings.Replace(base, "http:", "https:", 1)
	}
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, a.method, base+a.path, body)
	if err != nil {
		return h, err
	}
	for i := 0; i < len(a.headers); i += 2 {
		r.Header.Add(a.headers[i], a.headers[i+1])
	}
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	r.Host = a.host
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: w.trust(), DialContext: from(a.source)}
	if a.dial != nil {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return a.dial(ctx, to) }
	}
	if a.cert != nil {
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return a.cert, nil // whatever CAs the server asks for
		}
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return h, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	h = heard{status: resp.StatusCode, text: string(text), header: resp.Header}
	_ = json.Unmarshal(text, &h.Envelope) // a page is no envelope
	return h, err
}

// trust returns the TLS of a client that knows the published CA.
func (w *world) trust() *tls.Config {
	return &tls.Config{RootCAs: w.pool, ServerName: serverName, MinVersion: tls.VersionTLS12}
}

// from returns what dials from a loopback address.
func from(source string) func(context.Context, string, string) (net.Conn, error) {
	d := &net.Dialer{Timeout: 10 * time.Second}
	if source != "" {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(source), 0))
	}
	return d.DialContext
}

// refused fails the test unless an answer refuses, for one of some reasons.
func (h heard) refused(t *testing.T, what string, reasons ...ipam.Reason) {
	t.Helper()
	for _, r := range reasons {
		if h.Reason == r && h.Code != 0 {
			return
		}
		// Galaxy's routes have no reasons.
		if h.Reason == "" && (r == ipam.ReasonUnauthenticated && h.status == http.StatusUnauthorized ||
			(r == ipam.ReasonNotPermitted || r == ipam.ReasonPlainHTTP) && h.status == http.StatusForbidden) {
			return
		}
	}
	t.Errorf("%s: HTTP %d %.300s, want one of %v", what, h.status, h.text, reasons)
}

// done fails the test unless an answer says that it was done.
func (h heard) done(t *testing.T, what string) object {
	t.Helper()
	if h.status != http.StatusOK || h.Code != 0 {
		t.Fatalf("%s: HTTP %d %.300s", what, h.status, h.text)
	}
	data, _ := h.Data.(object)
	return data
}
