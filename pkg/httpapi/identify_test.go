package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// questions is a Gate that knows one user, and notes what RBAC is asked.
type questions struct {
	user    access.User
	unknown bool
	// recalls: what RBAC says is remembered. allows: it says yes.
	recalls, allows bool

	mu    sync.Mutex
	asked []access.Question
}

func (g *questions) Identify(*http.Request) (access.User, error) {
	if g.unknown {
		return access.User{}, ipam.Refuse(ipam.ReasonUnauthenticated, "nobody knows")
	}
	return g.user, nil
}

func (g *questions) Remembers(*http.Request) bool { return !g.unknown }

func (g *questions) Recalls(access.User, access.Question) bool { return g.recalls }

func (g *questions) Allow(_ context.Context, _ access.User, q access.Question) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, q)
	if g.allows {
		return nil
	}
	return ipam.Refuse(ipam.ReasonNotPermitted, "no")
}

// Of which namespace RBAC is asked: the one of the request where nothing of others can be touched by it, and of all
// otherwise, whatever namespace path, query and body name beside.
func TestNamespaceOfQuestions(t *testing.T) {
	t.Parallel()
	const mine = `{"host":"10.0.0.1","podNamespace":"mine","containerID":"c"}`
	for name, c := range map[string]struct {
		method, path, body string
		want               access.Question
	}{
		"ADD":         {"POST", prefixOf(""), mine, access.Question{Verb: "create", Resource: allocations, Namespace: "mine"}},
		"DEL":         {"DELETE", prefixOf(""), mine, access.Question{Verb: "delete", Resource: allocations, Namespace: "mine"}},
		"release":     {"DELETE", prefixOf("/ip/10.0.0.9"), mine, access.Question{Verb: "delete", Resource: allocations}},
		"GC":          {"POST", prefixOf("/gc"), mine, access.Question{Verb: "create", Resource: collections}},
		"conflict":    {"POST", prefixOf("/ip/10.0.0.9/conflict"), mine, access.Question{Verb: "create", Resource: conflicts}},
		"host":        {"DELETE", prefixOf("/host/10.0.0.1"), "", access.Question{Verb: "create", Resource: hostReleases}},
		"list":        {"GET", prefixOf("?podNamespace=mine"), "", access.Question{Verb: "list", Resource: allocations, Namespace: "mine"}},
		"list of all": {"GET", prefixOf(""), "", access.Question{Verb: "list", Resource: allocations}},
		"pod":         {"GET", prefixOf("/pod/mine/web"), "", access.Question{Verb: "list", Resource: allocations, Namespace: "mine"}},
		"pool":        {"GET", prefixOf("/pool/p"), "", access.Question{Verb: "list", Resource: allocations}},
		"galaxy":      {"GET", "/v1/ip?podNamespace=mine", "", access.Question{Verb: "list", Resource: allocations}},
		"galaxy's release": {
			"POST", "/v1/ip", `{"podNamespace":"mine","ips":[]}`, access.Question{Verb: "delete", Resource: allocations},
		},
		"filter": {
			"POST", "/v1/filter?podNamespace=mine", `{"Pod":{},"NodeNames":[]}`,
			access.Question{Verb: "create", Resource: placements},
		},
	} {
		g := &questions{user: access.User{Username: "tenant"}}
		f := newFixture(t, knows(g))
		if status, _ := f.from(t, "192.0.2.7:1", true, c.method, c.path, c.body); status != http.StatusForbidden {
			t.Errorf("%s: %d", name, status)
		}
		if !slices.Equal(g.asked, []access.Question{c.want}) {
			t.Errorf("%s: RBAC is asked %+v, want %+v", name, g.asked, c.want)
		}
	}
}

// What cannot be the name of a namespace is no question to RBAC.
func TestNamesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{`a\nb`, "UPPER", strings.Repeat("a", 64), "a/b", `\u0000`} {
		g := &questions{user: access.User{Username: "tenant"}}
		f := newFixture(t, knows(g))
		_, reason := f.from(t, "192.0.2.7:1", true, "DELETE", prefixOf(""), `{"host":"10.0.0.1","podNamespace":"`+name+`"}`)
		if len(g.asked) > 0 || reason != ipam.ReasonBadRequest {
			t.Errorf("%q: %s, RBAC is asked %+v", name, reason, g.asked)
		}
	}
}

// Who is bound to a node that the API server does not name acts for no host.
func TestNodeWithoutName(t *testing.T) {
	t.Parallel()
	g := &questions{user: access.User{Username: "system:node:", Groups: []string{"system:nodes"}}}
	f := newFixture(t, knows(g), func(o *Options) { o.HostsOf = func(string) []netip.Addr { return nil } })
	_, reason := f.from(t, "192.0.2.7:1", true, "POST", prefixOf(""), `{"host":"10.0.0.1","podNamespace":"a"}`)
	if reason != ipam.ReasonNotPermitted || len(g.asked) > 0 {
		t.Errorf("%s, RBAC is asked %+v", reason, g.asked)
	}
}

// untouched fails a test where somebody reads it.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body of a stranger is read")
	return 0, errors.New("read")
}

// The body of who is not known, or may not ask for placements, is not read.
func TestBodiesOfStrangers(t *testing.T) {
	t.Parallel()
	for _, path := range []string{prefixOf(""), prefixOf("/gc"), "/v1/ip", "/v1/filter"} {
		f := newFixture(t, knows(&questions{unknown: true}))
		r := localRequest("POST", path, io.NopCloser(untouched{t}))
		r.RemoteAddr, r.TLS = "192.0.2.7:1", &tls.ConnectionState{}
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	f := newFixture(t, knows(&questions{user: access.User{Username: "nobody"}}))
	r := localRequest("POST", "/v1/filter", io.NopCloser(untouched{t}))
	r.RemoteAddr, r.TLS = "192.0.2.7:1", &tls.ConnectionState{}
	w := httptest.NewRecorder()
	if f.handler.ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("a question without the right to ask: %d", w.Code)
	}
}

func prefixOf(path string) string { return "/netservicecontroller/v1/allocator" + path }

// silent is a Gate whose API server does not answer.
type silent struct{ questions }

func (*silent) Identify(*http.Request) (access.User, error) {
	return access.User{}, ipam.Refuse(ipam.ReasonUnavailable, "the API server does not say whose token it is")
}

// Who a caller is cannot be found out: he is to come again, in each API.
func TestNobodySaysWhoCalls(t *testing.T) {
	t.Parallel()
	f := newFixture(t, knows(&silent{}))
	for _, c := range []struct{ method, path, body string }{
		{"DELETE", prefixOf(""), `{}`}, {"POST", "/v1/ip", `{"ips":[]}`}, {"GET", "/v1/pool/p", ""},
		{"POST", "/v1/filter", `{"Pod":{},"NodeNames":[]}`},
	} {
		r := localRequest(c.method, c.path, strings.NewReader(c.body))
		r.RemoteAddr, r.TLS = "192.0.2.7:1", &tls.ConnectionState{}
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s %s: %d %v %s", c.method, c.path, w.Code, w.Header(), w.Body)
		}
	}
}
