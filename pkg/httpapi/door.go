package httpapi

import (
	"encoding/json"
	"net/http"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// door refuses plain HTTP of other machines: whoever is on the way could read and change it. With PlainHTTP it is
// answered, for plugins of the released system, and the log says so. What comes from this machine may be plain.
func (s *Service) door(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil && !isLocal(r) {
			if !s.PlainHTTP {
				s.refuse(w, r, noOperation, http.StatusForbidden, ipam.Refuse(ipam.ReasonPlainHTTP,
					"plain HTTP is answered on the controller's own machine alone").
					WithHint("use https; where plugins of the released system have to be answered, start the controller with "+
						"--plain-http"), envelopeCodec{})
				return
			}
			s.openly.Do(func() {
				s.Log.Warn("plain HTTP was answered", "caller", caller(r), "hint",
					"have this node's plugin use https, and take --plain-http away when all do")
			})
		}
		next.ServeHTTP(w, r)
	})
}

// isLocal reports whether a request came from this machine: from a loopback address, or over no network at all.
func isLocal(r *http.Request) bool {
	source, ok := sourceOf(r)
	return !ok || source.IsLoopback()
}

// sourceOf returns the address that a request came from; false where it came over no network.
func sourceOf(r *http.Request) (netip.Addr, bool) {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return at.Addr().Unmap().WithZone(""), err == nil
}

// subject is what a request is about, as far as it matters to who may send it.
type subject struct {
	Host      string `json:"host"`
	Namespace string `json:"podNamespace"`
}

// subjectOf reads the subject from path, query and body. What is malformed is refused by who reads all of it, by the
// same rules of JSON: nothing is decided about another host or namespace than this one.
func subjectOf(r *http.Request, op route, body []byte) (of subject) {
	switch {
	case op.hasBody:
		_ = json.Unmarshal(body, &of) // a malformed body is refused by who reads all of it
	case r.PathValue("host") != "":
		of.Host = r.PathValue("host")
	case r.PathValue("namespace") != "":
		of.Namespace = r.PathValue("namespace")
	default:
		q := r.URL.Query()
		of.Host, of.Namespace = q.Get("host"), q.Get("podNamespace")
	}
	return of
}
