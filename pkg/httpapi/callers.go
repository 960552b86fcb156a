package httpapi

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Gate identifies callers over TLS, and decides about their permissions; access.Gate is one. Errors are refusals.
type Gate interface {
	Identify(r *http.Request) (access.User, error)
	// Remembers reports whether Identify sends no request.
	Remembers(r *http.Request) bool
	Allow(ctx context.Context, who access.User, q access.Question) error
	// Recalls reports whether Allow sends no request.
	Recalls(who access.User, q access.Question) bool
}

// callers identifies the sender of a request and checks the sender's permissions. Its middlewares come in this order:
// door, greet, arrive, identify. After them, forwarding.by is the sender, and forwarding.arrived the time of arrival.
type callers struct {
	gate      Gate
	hostsOf   func(node string) []netip.Addr
	isHost    func(netip.Addr) bool
	isReplica func(*tls.ConnectionState) bool
	peers     Peers
	now       func() time.Time
	// namespace is the controller's own namespace.
	namespace string
	// plainHTTP and tellOpenly, which may be nil, come from Options.
	plainHTTP  bool
	tellOpenly func(netip.Addr)
	openly     rate.Sometimes
	rates      *rates
	refusals   *refusals
	log        *slog.Logger
}

func newCallers(o Options, rates *rates, refusals *refusals) *callers {
	return &callers{
		gate: o.Gate, hostsOf: o.HostsOf, isHost: o.IsHost, isReplica: o.IsReplica, peers: o.Peers, now: o.Leases.Now,
		namespace: o.Galaxy.Namespace, plainHTTP: o.PlainHTTP, tellOpenly: o.Openly,
		openly: rate.Sometimes{Interval: time.Minute}, rates: rates, refusals: refusals, log: o.Log,
	}
}

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
