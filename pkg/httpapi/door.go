package httpapi

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"

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
			if source, ok := sourceOf(r); ok && s.Openly != nil {
				s.Openly(source)
			}
			s.openly.Do(func() {
				s.Log.Warn("plain HTTP was answered", "caller", caller(r), "hint",
					"have this node's plugin use https, and take --plain-http away when all do")
			})
		}
		next.ServeHTTP(w, r)
	})
}

// isLocal reports whether a request was sent on this machine: both ends of its connection are loopback addresses, or it
// came over no network at all. What a proxy of this machine passes on is somebody else's, and so is what names another
// machine: a web page whose name leads to a loopback address can have a browser send that.
func isLocal(r *http.Request) bool {
	source, ok := sourceOf(r)
	if !ok {
		return true
	}
	if here, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if at, err := netip.ParseAddrPort(here.String()); err != nil || !at.Addr().Unmap().IsLoopback() {
			return false
		}
	}
	return source.IsLoopback() && !isProxied(r.Header) && namesLoopback(r.Host)
}

// isProxied reports whether a proxy says that it passes a request on.
func isProxied(h http.Header) bool {
	for _, name := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		if _, ok := h[name]; ok {
			return true
		}
	}
	return false
}

// namesLoopback reports whether the name by which a request calls the server is this machine's on any machine: a
// loopback address, localhost, or none. A name server is asked about none of them, so no page of a browser can have
// them lead here, and who means another machine uses none of them: the machine's own address came through a proxy.
func namesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "" || strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.Unmap().IsLoopback()
}

// sourceOf returns the address that a request came from; false where it came over no network.
func sourceOf(r *http.Request) (netip.Addr, bool) {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return at.Addr().Unmap().WithZone(""), err == nil
}

// subject has the fields of a request that decide who may send it.
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
