package httpapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// from sends a request as it comes from an address, by TLS or not, and returns the reason of the answer.
func (f *fixture) from(t *testing.T, source string, secure bool, method, path, body string) (int, ipam.Reason) {
	t.Helper()
	r := localRequest(method, path, strings.NewReader(body))
	r.RemoteAddr = source
	if secure {
		r.TLS = &tls.ConnectionState{}
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	var e wire.Envelope
	if strings.HasPrefix(w.Body.String(), "{") {
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
	}
	return w.Code, e.Reason
}

// Plain HTTP is answered on the controller's own machine alone, and with PlainHTTP to each host for itself.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	const here, there, there6 = "127.0.0.1:4000", "192.0.2.7:4000", "[2001:db8::7]:4000"
	// Each is refused for something else once it is past the door.
	for name, c := range map[string]struct {
		source             string
		method, path, body string
		// strict and open are the reasons without and with PlainHTTP.
		strict, open ipam.Reason
	}{
		"here":           {here, "POST", wire.Prefix, `{"host":"10.0.0.11"}`, ipam.ReasonMissingField, ipam.ReasonMissingField},
		"here by IPv6":   {"[::1]:4000", "POST", wire.Prefix, `{}`, ipam.ReasonMissingField, ipam.ReasonMissingField},
		"here, mapped":   {"[::ffff:127.0.0.1]:4000", "POST", wire.Prefix, `{}`, ipam.ReasonMissingField, ipam.ReasonMissingField},
		"no network":     {"pipe", "POST", wire.Prefix, `{}`, ipam.ReasonMissingField, ipam.ReasonMissingField},
		"itself":         {there, "POST", wire.Prefix, `{"host":"192.0.2.7"}`, ipam.ReasonPlainHTTP, ipam.ReasonMissingField},
		"itself by IPv6": {there6, "DELETE", wire.Prefix, `{"host":"2001:DB8:0::7"}`, ipam.ReasonPlainHTTP, ipam.ReasonMissingField},
		"itself, mapped": {"[::ffff:192.0.2.7]:1", "POST", wire.Prefix, `{"host":"192.0.2.7"}`, ipam.ReasonPlainHTTP, ipam.ReasonMissingField},
		"another host":   {there, "POST", wire.Prefix, `{"host":"192.0.2.8"}`, ipam.ReasonPlainHTTP, ipam.ReasonPlainHTTP},
		"two hosts":      {there, "POST", wire.Prefix, `{"host":"192.0.2.7","Host":"192.0.2.8"}`, ipam.ReasonPlainHTTP, ipam.ReasonPlainHTTP},
		"no host":        {there, "DELETE", wire.Prefix, `{}`, ipam.ReasonPlainHTTP, ipam.ReasonPlainHTTP},
		"a broken body":  {there, "DELETE", wire.Prefix, `{`, ipam.ReasonPlainHTTP, ipam.ReasonBadRequest},
		"another's release": {
			there, "DELETE", wire.Prefix + "/host/192.0.2.8", "", ipam.ReasonPlainHTTP, ipam.ReasonPlainHTTP,
		},
		"another's collection": {
			there, "POST", wire.Prefix + "/gc", `{"host":"192.0.2.8"}`, ipam.ReasonPlainHTTP, ipam.ReasonPlainHTTP,
		},
		"its conflict": {
			there, "POST", wire.Prefix + "/ip/10.0.0.1/conflict", `{}`, ipam.ReasonPlainHTTP, ipam.ReasonMissingField,
		},
		"an address":             {there, "GET", wire.Prefix + "/ip/10.0.0.1", "", ipam.ReasonPlainHTTP, ipam.ReasonPlainHTTP},
		"a scheduler on a node":  {"192.0.2.9:1", "POST", "/v1/filter", `{}`, ipam.ReasonPlainHTTP, ipam.ReasonMissingField},
		"a scheduler on no node": {there, "POST", "/v1/priority", `{}`, ipam.ReasonPlainHTTP, ipam.ReasonPlainHTTP},
		"a scheduler here":       {here, "POST", "/v1/filter", `{}`, ipam.ReasonMissingField, ipam.ReasonMissingField},
		"a list":                 {there, "GET", wire.Prefix, "", ipam.ReasonPlainHTTP, ""},
		"a page":                 {there, "GET", "/info", "", ipam.ReasonPlainHTTP, ""},
		"no path":                {there, "GET", "/nowhere", "", ipam.ReasonPlainHTTP, ipam.ReasonNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for plain, want := range map[bool]ipam.Reason{false: c.strict, true: c.open} {
				f := newFixture(t, func(o *Options) {
					o.PlainHTTP = plain
					o.IsHost = func(a netip.Addr) bool { return a == netip.MustParseAddr("192.0.2.9") }
				})
				status, got := f.from(t, c.source, false, c.method, c.path, c.body)
				if got != want || (want == ipam.ReasonPlainHTTP) != (status == http.StatusForbidden) {
					t.Errorf("--plain-http=%t: %d %s, want %s", plain, status, got, want)
				}
			}
		})
	}
}

// A request counts as one of this machine where both ends are loopback addresses, no proxy passes it on, and it names
// no other machine.
func TestOwnMachine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		here   string
		change func(*http.Request)
		want   bool
	}{
		"loopback": {"127.0.0.1:8090", nil, true}, "loopback by IPv6": {"[::1]:8090", nil, true},
		"by a name": {"127.0.0.1:8090", func(r *http.Request) { r.Host = "LocalHost:8090" }, true},
		"by none":   {"127.0.0.1:8090", func(r *http.Request) { r.Host = "" }, true},
		"by IPv6":   {"127.0.0.1:8090", func(r *http.Request) { r.Host = "[::1]" }, true},
		"mapped":    {"127.0.0.1:8090", func(r *http.Request) { r.Host = "[::ffff:127.0.0.1]:8090" }, true},
		// The sidecar of a mesh connects from a loopback address to the pod's own.
		"a sidecar":     {"10.0.0.5:8090", nil, false},
		"a proxy":       {"127.0.0.1:8090", func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.7") }, false},
		"an old proxy":  {"127.0.0.1:8090", func(r *http.Request) { r.Header.Set("Via", "1.1 p") }, false},
		"a quiet proxy": {"127.0.0.1:8090", func(r *http.Request) { r.Header["Forwarded"] = []string{""} }, false},
		// A web page's name that leads to a loopback address.
		"a rebound name": {"127.0.0.1:8090", func(r *http.Request) { r.Host = "evil.example:8090" }, false},
		"a look-alike":   {"127.0.0.1:8090", func(r *http.Request) { r.Host = "localhost.evil.example" }, false},
		// A proxy of connections on this machine, which adds no header.
		"its own address": {"127.0.0.1:8090", func(r *http.Request) { r.Host = "10.0.0.11:8090" }, false},
		"that by IPv6":    {"127.0.0.1:8090", func(r *http.Request) { r.Host = "[fd00::11]:8090" }, false},
		"no address":      {"127.0.0.1:8090", func(r *http.Request) { r.Host = "0.0.0.0:8090" }, false},
		"another machine": {"127.0.0.1:8090", func(r *http.Request) { r.RemoteAddr = "192.0.2.7:1" }, false},
	} {
		r := localRequest("GET", wire.Prefix, http.NoBody)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey,
			net.Addr(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.here)))))
		if c.change != nil {
			c.change(r)
		}
		if got := isLocal(r); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Galaxy's routes are not for hosts; they refuse in galaxy's manner.
func TestPlainHTTPOfGalaxy(t *testing.T) {
	t.Parallel()
	f := newFixture(t, plainHTTP)
	for _, op := range f.galaxyRoutes() {
		if status, _ := f.from(t, "192.0.2.7:1", false, op.method, strings.Replace(op.path, "{name}", "p", 1), `{}`); status !=
			http.StatusForbidden {
			t.Errorf("%s %s: %d", op.method, op.path, status)
		}
	}
}

// What one replica tells another of a caller arrives as it was.
func TestToldCaller(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Caller{
		"nobody": {}, "a user": {Name: "alice"}, "a node": {"n", []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}},
		"a node without addresses": {"n", []netip.Addr{}},
	} {
		h := http.Header{}
		c.writeTo(h)
		if diff := cmp.Diff(c, toldCaller(h), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if c := toldCaller(http.Header{headerHosts: {"x,10.0.0.1,"}}); len(c.Hosts) != 1 {
		t.Errorf("%+v", c)
	}
}

// A request that says to be forwarded counts from this machine or by a connection of a replica alone.
func TestForwardedBySomebody(t *testing.T) {
	t.Parallel()
	secret, replica := make([]byte, 32), false
	f := newFixture(t, func(o *Options) { o.IsReplica = func(*tls.ConnectionState) bool { return replica } })
	f.Peers.(*fakePeers).secrets = map[string][]byte{"there_b": secret}
	for name, c := range map[string]struct {
		source          string
		secure, replica bool
		counts          bool
	}{
		"here": {"127.0.0.1:1", false, false, true}, "plain": {"192.0.2.7:1", false, false, false},
		"TLS": {"192.0.2.7:1", true, false, false}, "a replica": {"192.0.2.7:1", true, true, true},
	} {
		replica = c.replica
		_, err := f.forwarded(secret, f.Leases.Now(), func(r *http.Request) {
			r.RemoteAddr = c.source
			*r = *r.WithContext(withConn(r.Context(), nil))
			if c.secure {
				r.TLS = &tls.ConnectionState{}
			}
		})
		if (err == nil) != c.counts {
			t.Errorf("%s: %v", name, err)
		}
	}
}
