package ui

import (
	"crypto/rand"
	"crypto/subtle"
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

// login follows the link of the terminal. It answers a page that goes on by itself, and no redirect: after one a
// browser would not send the cookie, as the way began on another site.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	to := r.URL.Query().Get("to")
	if u, err := url.Parse(to); err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(to, "/") ||
		strings.HasPrefix(to, "//") || strings.Contains(to, `\`) {
		to = "/"
	}
	if s.guard.knows(r) {
		s.write(w, r, http.StatusOK, "enter", map[string]any{"To": to})
		return
	}
	session, stranger := s.guard.spend(r.URL.Query().Get("token"))
	if stranger {
		s.guard.mu.Lock()
		token := s.guard.token
		s.guard.mu.Unlock()
		s.guard.again(token)
	}
	if session == "" {
		s.refuse(w, r, http.StatusForbidden, "This link was used already, or is none",
			"Follow the link that the terminal shows. It works once.")
		return
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure is for HTTPS, and this is one machine
		Name: cookieName, Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	s.write(w, r, http.StatusOK, "enter", map[string]any{"To": to})
}

// guarded lets a request through to h that names this machine, is of no other site, and has the cookie.
func (s *Server) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers(w.Header())
		switch {
		case !ofThisMachine(r.Host):
			s.refuse(w, r, http.StatusMisdirectedRequest, "This is not the name of this machine",
				"Use the link that the terminal shows, with localhost or 127.0.0.1.")
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			s.refuse(w, r, http.StatusMethodNotAllowed, "These pages change nothing", "Only GET is answered.")
		case foreign(r):
			s.refuse(w, r, http.StatusForbidden, "Another site asked for this", "Open the page itself.")
		case r.URL.Path != "/login" && !strings.HasPrefix(r.URL.Path, "/static/") && !s.guard.knows(r):
			s.refuse(w, r, http.StatusUnauthorized, "You are not logged in",
				"Follow the link that the terminal shows. If you did, and came here from another page: load this "+
					"page again.")
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// foreign reports whether another site asks, other than by a link that somebody followed.
func foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return true
		}
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate"
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
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
