package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
)

// cookieName is that of the session.
const cookieName = "bcsnet-ui"

// guard lets in the user who follows the link in the terminal. The link works once; its token is exchanged for a
// cookie. If somebody without the cookie follows the link again, one of the two is a stranger: the session ends, and
// the terminal shows a new link.
type guard struct {
	// again gets a new token after the old one was used twice.
	again func(token string)

	mu             sync.Mutex
	token, session string
	used           bool
}

func newGuard(again func(token string)) *guard {
	return &guard{again: again, token: rand.Text(), session: rand.Text()}
}

// same compares secrets in constant time.
func same(a, b string) bool { return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// knows reports whether a request has the cookie of the session.
func (g *guard) knows(r *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range r.CookiesNamed(cookieName) { // includes cookies of other ports of this machine
		if g.used && same(c.Value, g.session) {
			return true
		}
	}
	return false
}

// spend exchanges the token of a link for a session; empty if the token is wrong or was used. stranger reports the
// second use.
func (g *guard) spend(token string) (session string, stranger bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !same(token, g.token):
		return "", false
	case g.used:
		g.token, g.session, g.used = rand.Text(), rand.Text(), false
		return "", true
	}
	g.used = true
	return g.session, false
}

// login handles the link of the terminal.
func (l *local) login(w http.ResponseWriter, r *http.Request) {
	s, to := l.server, here(r.URL.Query().Get("to"))
	if l.guard.knows(r) {
		s.enter(w, r, to)
		return
	}
	session, stranger := l.guard.spend(r.URL.Query().Get("token"))
	if stranger {
		l.guard.mu.Lock()
		token := l.guard.token
		l.guard.mu.Unlock()
		l.guard.again(token)
	}
	if session == "" {
		s.refuse(w, r, http.StatusForbidden, "This link was used already, or is none",
			"Follow the link that the terminal shows. It works once.")
		return
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure is for HTTPS, and this is one machine
		Name: cookieName, Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	s.enter(w, r, to)
}

// local is the door on the user's own machine: the link in the terminal.
type local struct {
	server *Server
	guard  *guard
	user   *visitor
}

func (l *local) admits(host string) bool { return ofThisMachine(host) }

func (l *local) visitor(r *http.Request) *visitor {
	if l.guard.knows(r) {
		return l.user
	}
	return nil
}

func (l *local) posts(string) bool         { return false }
func (l *local) public(path string) bool   { return path == "/login" }
func (l *local) secure() bool              { return false }
func (l *local) routes(mux *http.ServeMux) { mux.HandleFunc("/login", l.login) }
func (l *local) outside(w http.ResponseWriter, r *http.Request) {
	l.server.refuse(w, r, http.StatusUnauthorized, "You are not logged in", "Follow the link that the terminal shows.")
}

// ofThisMachine reports whether the header Host names this machine, at any port because ssh -L may map it. A DNS name
// that resolves to this machine does not count, because others may control it.
func ofThisMachine(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if name == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(name)
	return err == nil && a.IsLoopback()
}
