package httpapi

import (
	"net/http"
	"path"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// screen refuses requests that no well-meaning client sends, before the mux sees them. The mux answers a path with a
// double slash or dots by a redirect, which has no envelope, and which some clients follow to another address than they
// named. A web page of another site can send requests without asking, because a body without a Content-Type counts as
// JSON and the browser's network may reach this port.
func (s *Service) screen(next http.Handler) http.Handler {
	browsers := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !isClean(r.URL.EscapedPath()):
			s.noSuchPath(w, r)
		case browsers.Check(asWrite(r)) != nil:
			s.refusals.refuse(w, r, noOperation, http.StatusForbidden,
				ipam.Refuse(ipam.ReasonBadRequest, "a web page of another site sent the request").
					WithHint("send it from a program, without the headers Origin and Sec-Fetch-Site"), envelopeCodec{})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isClean reports whether the mux uses a path unchanged.
func isClean(p string) bool {
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return strings.HasPrefix(p, "/") && p == clean
}

// asWrite returns a request that http.CrossOriginProtection treats as a write. It would let reads pass, but a list of
// all addresses costs the replica work even if the page cannot see it.
func asWrite(r *http.Request) *http.Request {
	return &http.Request{Method: http.MethodPost, Host: r.Host, URL: r.URL, Header: r.Header}
}

// otherMethods answers requests with a method that a path does not have.
func (s *Service) otherMethods(allowed []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		s.refusals.refuse(w, r, noOperation, http.StatusMethodNotAllowed, ipam.Refuse(ipam.ReasonBadRequest,
			"method %s is not allowed here: use %s", clip(r.Method), strings.Join(allowed, " or ")), envelopeCodec{})
	})
}

func (s *Service) noSuchPath(w http.ResponseWriter, r *http.Request) {
	s.refusals.refuse(w, r, noOperation, http.StatusNotFound,
		ipam.Refuse(ipam.ReasonNotFound, "there is no %s", clip(r.URL.Path)).WithHint("see /openapi.json"),
		envelopeCodec{})
}
