package ui

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/lru"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
)

const (
	// sessionCookie is the session's cookie. Browsers accept the prefix __Host- only by HTTPS, and only for this host.
	sessionCookie = "__Host-bcsnet-ui"
	// longest bounds the duration of a session.
	longest = 12 * time.Hour
	// maxLogin bounds the form of a login, maxCookie the cookie, both in octets. Browsers drop longer cookies.
	maxLogin, maxCookie = 16 << 10, 3900
	// mostSessions bounds the visitors in memory, and the sessions that were ended here.
	mostSessions = 1000
)

// Shared configures a server for many users.
type Shared struct {
	// CertFile and KeyFile hold the certificate and its private key, the same for all replicas.
	CertFile, KeyFile string
	// URL is the address in users' browsers, if its name is not in the certificate; may be nil.
	URL *url.URL
	// Prometheus has the trends of the pools; may be nil.
	Prometheus *view.Prometheus
}

// Serve serves the pages by HTTPS until the context ends. Users log in by a token of the cluster, and the server reads
// with that token. The server itself needs no rights.
func (o Shared) Serve(ctx context.Context, s *app.App, inner net.Listener) error {
	t, err := o.door(s)
	if err != nil {
		return err
	}
	return t.server.serve(ctx, inner, t.pair.tls())
}

func (o Shared) door(s *app.App) (*tokens, error) {
	u, err := newServer(s)
	if err != nil {
		return nil, err
	}
	u.Prometheus = o.Prometheus
	pair, err := newKeyPair(o.CertFile, o.KeyFile, s.Say.Warn)
	if err != nil {
		return nil, (&app.Failure{Message: "the certificate cannot be used: " + err.Error(), Cause: err}).
			WithHint("--tls-cert-file and --tls-private-key-file name a certificate and its key in PEM")
	}
	t := &tokens{
		server: u, pair: pair, patience: newPatience(), out: cache.NewLRUExpireCache(mostSessions),
		visitors: lru.NewWithEvictionFunc(mostSessions, func(_ lru.Key, v any) { v.(*visitor).live.stop() }),
	}
	if o.URL != nil {
		t.host, u.origin = o.URL.Hostname(), o.URL.Scheme+"://"+o.URL.Host
	}
	u.door = t
	return t, nil
}

// tokens is the door of a server in a cluster: users log in by a token that the API server verifies. A sealed cookie
// holds the token, so that any replica recognizes the user.
type tokens struct {
	server   *Server
	pair     *keyPair
	host     string // in addition to the names of the certificate; may be empty
	patience *patience
	out      *cache.LRUExpireCache // sessions that were ended here

	mu       sync.Mutex
	visitors *lru.Cache // of *visitor, by the session
}

// session has the content of a cookie.
type session struct {
	ID    string    `json:"id"`
	Name  string    `json:"name"`
	Token string    `json:"token"`
	Until time.Time `json:"until"`
}

func (t *tokens) posts(path string) bool  { return path == "/login" || path == "/logout" }
func (t *tokens) public(path string) bool { return t.posts(path) }
func (t *tokens) secure() bool            { return true }

func (t *tokens) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /login", t.login)
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/", http.StatusSeeOther) // shows the form if necessary
	})
	mux.HandleFunc("POST /logout", t.logout)
}

// admits reports whether a host is a name of the certificate or of the URL.
func (t *tokens) admits(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	return name != "" && (name == t.host || t.pair.names(name))
}

// session returns the session in the cookie of a request, if it is valid.
func (t *tokens) session(r *http.Request) (s session, ok bool) {
	c, err := r.Cookie(sessionCookie)
	if err != nil {
		return s, false
	}
	text, err := t.pair.open(c.Value)
	if err != nil || json.Unmarshal(text, &s) != nil || !time.Now().Before(s.Until) {
		return s, false
	}
	_, gone := t.out.Get(s.ID)
	return s, !gone
}

func (t *tokens) visitor(r *http.Request) *visitor {
	s, ok := t.session(r)
	if !ok {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if v, ok := t.visitors.Get(s.ID); ok {
		return v.(*visitor)
	}
	v := t.server.newVisitor(t.server.app.AsBearer(s.Token), s.Name, s.Until)
	t.visitors.Add(s.ID, v)
	return v
}

// outside asks for a token.
func (t *tokens) outside(w http.ResponseWriter, r *http.Request) {
	what := ""
	if visitorOf(r) != nil {
		t.end(w, r)
		what = "Your token is no longer valid"
	}
	t.ask(w, r, http.StatusUnauthorized, what, r.URL.RequestURI())
}
