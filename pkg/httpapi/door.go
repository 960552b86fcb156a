package httpapi

import (
	"net/http"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// door refuses plain HTTP from other machines, because anybody on the network path could read and change it. With
// PlainHTTP it is answered, for plugins of the released system, and logged. Requests from this machine may be plain.
func (c *callers) door(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil && !isLocal(r) {
			if !c.plainHTTP {
				c.refusals.refuse(w, r, noOperation, http.StatusForbidden, ipam.Refuse(ipam.ReasonPlainHTTP,
					"plain HTTP is answered only on the controller's own machine").
					WithHint("use https; if plugins of the released system have to be answered, start the "+
						"controller with --plain-http"), envelopeCodec{})
				return
			}
			if source, ok := sourceOf(r); ok && c.tellOpenly != nil {
				c.tellOpenly(source)
			}
			c.openly.Do(func() {
				c.log.Warn("plain HTTP was answered", "caller", caller(r), "hint",
					"have this node's plugin use https, and take --plain-http away when all do")
			})
		}
		next.ServeHTTP(w, r)
	})
}
