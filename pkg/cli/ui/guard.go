package ui

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// here returns a path of this server unchanged; / for any other target.
func here(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
		strings.Contains(to, `\`) {
		return "/"
	}
	return to
}

// enter answers with a page that continues to another one by itself. A redirect would not do: if the navigation began
// on another site, browsers would not send the cookie with it.
func (s *Server) enter(w http.ResponseWriter, r *http.Request, to string) {
	s.write(w, r, http.StatusOK, "enter", map[string]any{"To": to})
}

// guarded calls h for requests that name this server, come from no other site, and belong to a visitor.
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
		case r.Method != http.MethodGet && r.Method != http.MethodHead &&
			(r.Method != http.MethodPost || !d.posts(path)):
			w.Header().Set("Allow", "GET, HEAD")
			s.refuse(w, r, http.StatusMethodNotAllowed, "These pages change nothing", "Only GET is answered.")
		case s.foreign(r):
			s.refuse(w, r, http.StatusForbidden, "Another site asked for this", "Open the page itself.")
		case v != nil || d.public(path) || strings.HasPrefix(path, "/static/"):
			h.ServeHTTP(w, r)
		case elsewhere(r): // browsers withhold the cookie until the page itself asks
			s.enter(w, r, r.URL.RequestURI())
		default:
			d.outside(w, r)
		}
	})
}

// healthy is the path of a Pod's probes, which have neither a host name nor a cookie.
const healthy = "/healthz"

// foreign reports whether a request comes from another site, except by a followed link.
func (s *Server) foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && (s.origin == "" || origin != s.origin) {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return true
		}
	}
	return elsewhere(r) && (r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Method == http.MethodPost)
}

// elsewhere reports whether the navigation to a page began on another site.
func elsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// headers sets the security headers for browsers.
func headers(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"connect-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, forms would have no origin
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
