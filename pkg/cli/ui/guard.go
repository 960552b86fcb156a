package ui

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
)

// cookieName is that of the session.
const cookieName = "bcsnet-ui"

// guard lets in who has followed the link that the terminal shows. The link works once; its token becomes a cookie. If
// somebody without the cookie follows it a second time, one of the two is a stranger: the session ends, and the
// terminal shows a new link.
type guard struct {
	// again is called with a new token when the old one was used twice.
	again func(token string)

	mu             sync.Mutex
	token, session string
	used           bool
}

func newGuard(again func(token string)) *guard {
	return &guard{again: again, token: rand.Text(), session: rand.Text()}
}

// same compares secrets in a time that tells nothing of them.
func same(a, b string) bool { return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// knows reports whether a request has the cookie of the session.
func (g *guard) knows(r *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range r.CookiesNamed(cookieName) { // those of another port of this machine come along
		if g.used && same(c.Value, g.session) {
			return true
		}
	}
	return false
}

// spend takes the token of a link, and returns the session for its cookie; empty if the token is not the one.
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

// here returns a path as it leads to a page of this server; / for whatever leads elsewhere.
func here(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
		strings.Contains(to, `\`) {
		return "/"
	}
	return to
}

// enter answers a page that goes on to another one by itself. It is no redirect: if the way began on another site, a
// browser would not send the cookie after that.
func (s *Server) enter(w http.ResponseWriter, r *http.Request, to string) {
	s.write(w, r, http.StatusOK, "enter", map[string]any{"To": to})
}

// login follows the link of the terminal.
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

// local is the door of one's own machine: the link of the terminal.
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

// guarded lets a request through to h that names this server, is of no other site, and is of a visitor.
func (s *Server) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers(w.Header())
		d := s.door
		v := d.visitor(r)
		r = r.WithContext(context.WithValue(r.Context(), visiting{}, v))
		switch path := r.URL.Path; {
		case path == healthy:
			_, _ = io.WriteString(w, "ok\n") // who asks may have gone
		case !d.admits(r.Host):
			s.refuse(w, r, http.StatusMisdirectedRequest, "This is not the name of this server",
				"Use localhost or 127.0.0.1, or in a cluster a name of the certificate or of --url.")
		case r.Method != http.MethodGet && r.Method != http.MethodHead && (r.Method != http.MethodPost || !d.posts(path)):
			w.Header().Set("Allow", "GET, HEAD")
			s.refuse(w, r, http.StatusMethodNotAllowed, "These pages change nothing", "Only GET is answered.")
		case s.foreign(r):
			s.refuse(w, r, http.StatusForbidden, "Another site asked for this", "Open the page itself.")
		case v != nil || d.public(path) || strings.HasPrefix(path, "/static/"):
			h.ServeHTTP(w, r)
		case elsewhere(r): // the browser keeps the cookie back until the page itself asks
			s.enter(w, r, r.URL.RequestURI())
		default:
			d.outside(w, r)
		}
	})
}

// healthy is the path of the probes of a Pod, which name no host and have no cookie.
const healthy = "/healthz"

// foreign reports whether another site asks, other than by a link that somebody followed.
func (s *Server) foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && (s.origin == "" || origin != s.origin) {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return true
		}
	}
	return elsewhere(r) && (r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Method == http.MethodPost)
}

// elsewhere reports whether the way to a page began on another site.
func elsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// ofThisMachine reports whether the header Host names this machine, at any port: ssh -L may bring another one. A name
// that others control, and that leads here, does not.
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

// headers sets what browsers are to keep to.
func headers(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"connect-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer forms would be of no origin
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
