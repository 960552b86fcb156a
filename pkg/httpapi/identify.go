package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// greet identifies the sender of a request over TLS before its body is read, so that bodies of unknown callers are not
// stored. A request that claims to be forwarded must come over a connection of a replica.
func (c *callers) greet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if of := callOf(r); of.forwarding.from != "" {
			err = c.fromPeer(r, of.forwarding.from)
		} else if r.TLS != nil {
			_, err = c.known(r, of.route)
		}
		if err != nil {
			c.refusals.answerUnheard(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// identify refuses requests without permission, and logs the sender and origin.
func (c *callers) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		of := callOf(r)
		err := c.permit(r, of)
		h := &of.forwarding
		if of.route.access.where == ofSubject && h.by.Name != "" && h.by.Hosts == nil {
			h.namespace = subjectOf(r, of.route, of.body).Namespace // the namespace of the RBAC question
		}
		addAttrs(r.Context(), slog.String("user", h.by.Name), slog.String("from", h.caller))
		if err != nil {
			c.refusals.answerUnheard(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// permit identifies the sender of a request, and refuses it without permission. Forwarded requests were already checked
// by the other replica. Callers on this machine without TLS have all permissions.
func (c *callers) permit(r *http.Request, of *call) error {
	switch {
	case of.forwarding.from != "":
		return nil
	case r.TLS != nil:
		return c.permitUser(r, of)
	case isLocal(r):
		return nil
	}
	op := of.route
	source, _ := sourceOf(r)
	of.forwarding.by = Caller{Name: "plain HTTP", Hosts: []netip.Addr{source}}
	if err := c.rates.keepRate(r, of, rateHost, source.String()); err != nil {
		return err
	}
	if op.access.resource == placements && (c.isHost == nil || !c.isHost(source)) {
		return ipam.Refuse(ipam.ReasonPlainHTTP,
			"by plain HTTP, only schedulers on nodes are answered, and no Node has the address %s", source).
			WithHint("have the scheduler use https (scheduler in the documentation), or put its address into the "+
				"annotation %s of its Node", hosts.Annotation)
	}
	about := subjectOf(r, op, of.body)
	if !of.forwarding.by.mayAsk(op.access.by, about) {
		return ipam.Refuse(ipam.ReasonPlainHTTP,
			"by plain HTTP, host %s may ask only for itself: %s of host %q is not answered", source, op.name,
			clip(about.Host)).
			WithHint("use https")
	}
	return nil
}

// permitUser does the same for callers over TLS: it asks RBAC, and a caller on a node may act only for that node's
// hosts.
func (c *callers) permitUser(r *http.Request, of *call) error {
	op, about := of.route, subjectOf(r, of.route, of.body)
	who, err := c.known(r, op)
	if err != nil {
		return err
	}
	by := Caller{Name: clip(who.user.Username)}
	node, bound := access.NodeOf(who.user)
	if bound {
		by.Name = clip(who.user.Username + " on " + node)
		by.Hosts = append([]netip.Addr{}, c.hostsOf(node)...) // never nil, which stands for all
	}
	of.forwarding.by = by
	if err := c.rates.keepUserRate(r, of, who, node, bound, about); err != nil {
		return err
	}
	if bound && !by.mayAsk(op.access.by, about) {
		return ipam.Refuse(ipam.ReasonNotPermitted,
			"%s acts only for its own node, whose addresses are %s: %s of host %q is not answered", by.Name,
			by.hosts(), op.name, clip(about.Host)).
			WithHint("further addresses of a node stand in its annotation %s", hosts.Annotation)
	}
	q := access.Question{Verb: op.access.verb, Resource: op.access.resource}
	switch op.access.where {
	case everywhere:
	case ofSubject:
		q.Namespace = about.Namespace
	case ofController:
		q.Namespace = c.namespace
	}
	if q.Namespace != "" && len(validation.IsDNS1123Label(q.Namespace)) > 0 { // RBAC is not asked about invalid names
		return ipam.Refuse(ipam.ReasonBadRequest, "podNamespace %q cannot be the name of a namespace",
			clip(q.Namespace))
	}
	return c.allow(r.Context(), op, who, q)
}

// known returns the caller of a connection, from the connection's cache or from the Gate.
func (c *callers) known(r *http.Request, op route) (*identity, error) {
	if c.gate == nil {
		return nil, ipam.Refuse(ipam.ReasonUnavailable, "this replica knows no callers yet").WithHint("ask again")
	}
	conn, shown := connectionOf(r), r.Header.Get("Authorization")
	if conn != nil {
		if who := conn.identity.Load(); who != nil && who.authorization == shown && time.Now().Before(who.until) {
			return who, nil
		}
	}
	ended := settle(func(bool) {})
	if !c.gate.Remembers(r) {
		var err error
		if ended, err = c.rates.turn(r.Context(), op, rateUnknown, unknownKey(r)); err != nil {
			return nil, err
		}
	}
	user, err := c.gate.Identify(r)
	nobody := err != nil && asRefusal(err).Reason == ipam.ReasonUnauthenticated
	ended(nobody)
	if conn != nil && nobody {
		conn.setKnown(false)
	}
	if err != nil {
		return nil, err
	}
	who := newIdentity(user, shown)
	if conn != nil {
		conn.identity.Store(who)
		conn.setKnown(true)
	}
	return who, nil
}

// allow returns a refusal unless RBAC allows the user an operation. The node's name distinguishes users on different
// nodes.
func (c *callers) allow(ctx context.Context, op route, who *identity, q access.Question) error {
	if who.may(q) {
		return nil
	}
	ended := settle(func(bool) {})
	if !c.gate.Recalls(who.user, q) {
		node, _ := access.NodeOf(who.user)
		var err error
		if ended, err = c.rates.turn(ctx, op, rateDenied, who.user.Username+" "+node); err != nil {
			return err
		}
	}
	err := c.gate.Allow(ctx, who.user, q)
	ended(err != nil && asRefusal(err).Reason == ipam.ReasonNotPermitted)
	if err == nil {
		who.keep(q)
	}
	return err
}

// subject has the fields of a request that decide about the sender's permission.
type subject struct {
	Host      string `json:"host"`
	Namespace string `json:"podNamespace"`
}

// subjectOf reads the subject from path, query and body. Malformed input is refused later by the full parser, which
// uses the same JSON rules, so that the decision concerns exactly this host and namespace.
func subjectOf(r *http.Request, op route, body []byte) (of subject) {
	switch {
	case op.hasBody:
		_ = json.Unmarshal(body, &of) // the full parser refuses a malformed body
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
