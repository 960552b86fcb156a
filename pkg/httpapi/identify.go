package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bcsnet/bcsnet/pkg/access"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Gate finds out who calls by TLS, and what they may; access.Gate is one. Errors are refusals.
type Gate interface {
	Identify(r *http.Request) (access.User, error)
	// Remembers reports whether Identify asks nobody.
	Remembers(r *http.Request) bool
	Allow(ctx context.Context, who access.User, q access.Question) error
	// Recalls reports whether Allow asks nobody.
	Recalls(who access.User, q access.Question) bool
}

const (
	// trusted is how long a connection remembers who calls by it and what they may. It comes on top of what the Gate
	// remembers.
	trusted = 10 * time.Second
	// maxAllowed is how many permissions a connection remembers.
	maxAllowed = 256
)

// identity is who calls by a connection. Those who share nothing but the replica share no lock for it.
type identity struct {
	user access.User
	// authorization is the header by which the caller is known.
	authorization string
	until         time.Time

	mu      sync.Mutex
	allowed map[access.Question]struct{}
}

// greet finds out who sends a request by TLS, before its body is read: nobody unknown has bodies kept here. What is
// said to be forwarded has to come by a connection of a replica.
func (s *Service) greet(r *http.Request, op route) error {
	switch h := forwardingOf(r); {
	case h.from != "":
		return s.fromPeer(r, h.from)
	case r.TLS == nil:
		return nil
	}
	_, err := s.known(r, op)
	return err
}

// identify finds out who sends a request, and refuses what they may not do. What another replica forwards, it has
// looked at. Whoever calls from this machine without TLS may do anything.
func (s *Service) identify(r *http.Request, op route, body []byte) (*http.Request, error) {
	h := forwardingOf(r)
	switch {
	case h.from != "":
		return r, nil
	case r.TLS != nil:
		return s.identifyUser(r, op, body)
	case isLocal(r):
		return r, nil
	}
	source, _ := sourceOf(r)
	h.by = Caller{Name: "plain HTTP", Hosts: []netip.Addr{source}}
	if err := s.keepRate(h.on(r), op, body, rateHost, source.String()); err != nil {
		return h.on(r), err
	}
	if op.access.resource == placements && (s.IsHost == nil || !s.IsHost(source)) {
		return h.on(r), ipam.Refuse(ipam.ReasonPlainHTTP,
			"by plain HTTP, schedulers on nodes are answered alone, and no Node has the address %s", source).
			WithHint("have the scheduler use https, as docs/scheduler.md shows, or put its address into the annotation %s of "+
				"its Node", hosts.Annotation)
	}
	of := subjectOf(r, op, body)
	if !h.by.mayAsk(op.access.by, of) {
		return h.on(r), ipam.Refuse(ipam.ReasonPlainHTTP,
			"by plain HTTP, host %s asks for itself alone: %s of host %q is not answered", source, op.name, clip(of.Host)).
			WithHint("use https")
	}
	return h.on(r), nil
}

// audit adds who sends a request, and from where, to what the log says of it.
func audit(r *http.Request) {
	h := forwardingOf(r)
	addAttrs(r.Context(), slog.String("user", h.by.Name), slog.String("from", h.caller))
}

// identifyUser does it for who calls by TLS: RBAC is asked, and who is on a node acts for that node's hosts alone.
func (s *Service) identifyUser(r *http.Request, op route, body []byte) (*http.Request, error) {
	of := subjectOf(r, op, body)
	who, err := s.known(r, op)
	if err != nil {
		return r, err
	}
	h := forwardingOf(r)
	h.by = Caller{Name: clip(who.user.Username)}
	node, bound := access.NodeOf(who.user)
	if bound {
		h.by.Name = clip(who.user.Username + " on " + node)
		h.by.Hosts = append([]netip.Addr{}, s.HostsOf(node)...) // never nil, which stands for all
	}
	if err := s.keepUserRate(h.on(r), op, body, who, node, bound, of); err != nil {
		return h.on(r), err
	}
	if bound {
		if !h.by.mayAsk(op.access.by, of) {
			return h.on(r), ipam.Refuse(ipam.ReasonNotPermitted,
				"%s acts for its own node alone, whose addresses are %s: %s of host %q is not answered", h.by.Name,
				h.by.hosts(), op.name, clip(of.Host)).
				WithHint("further addresses of a node stand in its annotation %s", hosts.Annotation)
		}
	}
	q := access.Question{Verb: op.access.verb, Resource: op.access.resource}
	switch op.access.where {
	case everywhere:
	case ofSubject:
		q.Namespace = of.Namespace
	case ofController:
		q.Namespace = s.Galaxy.Namespace
	}
	if q.Namespace != "" && len(validation.IsDNS1123Label(q.Namespace)) > 0 { // RBAC is not asked about what cannot be
		return h.on(r), ipam.Refuse(ipam.ReasonBadRequest, "podNamespace %q cannot be the name of a namespace",
			clip(q.Namespace))
	}
	return h.on(r), s.allow(r.Context(), op, who, q)
}

// known returns who calls by a connection, as the connection remembers it or as the Gate finds out.
func (s *Service) known(r *http.Request, op route) (*identity, error) {
	if s.Gate == nil {
		return nil, ipam.Refuse(ipam.ReasonUnavailable, "this replica knows no callers yet").WithHint("ask again")
	}
	c, shown := connectionOf(r), r.Header.Get("Authorization")
	if c != nil {
		if who := c.identity.Load(); who != nil && who.authorization == shown && time.Now().Before(who.until) {
			return who, nil
		}
	}
	ended := settle(func(bool) {})
	if !s.Gate.Remembers(r) {
		var err error
		if ended, err = s.turn(r.Context(), op, rateUnknown, unknownKey(r)); err != nil {
			return nil, err
		}
	}
	user, err := s.Gate.Identify(r)
	nobody := err != nil && asRefusal(err).Reason == ipam.ReasonUnauthenticated
	ended(nobody)
	if c != nil && nobody {
		c.setKnown(false)
	}
	if err != nil {
		return nil, err
	}
	who := &identity{
		user: user, authorization: shown, until: time.Now().Add(trusted), allowed: map[access.Question]struct{}{},
	}
	if c != nil {
		c.identity.Store(who)
		c.setKnown(true)
	}
	return who, nil
}

// allow refuses what RBAC does not allow a user, whom a node's name tells from those of other nodes.
func (s *Service) allow(ctx context.Context, op route, who *identity, q access.Question) error {
	if who.may(q) {
		return nil
	}
	ended := settle(func(bool) {})
	if !s.Gate.Recalls(who.user, q) {
		node, _ := access.NodeOf(who.user)
		var err error
		if ended, err = s.turn(ctx, op, rateDenied, who.user.Username+" "+node); err != nil {
			return err
		}
	}
	err := s.Gate.Allow(ctx, who.user, q)
	ended(err != nil && asRefusal(err).Reason == ipam.ReasonNotPermitted)
	if err == nil {
		who.keep(q)
	}
	return err
}

// may reports whether the connection remembers that its caller may do something.
func (i *identity) may(q access.Question) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, ok := i.allowed[q]
	return ok
}

// keep remembers that the caller may do something.
func (i *identity) keep(q access.Question) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.allowed) >= maxAllowed {
		clear(i.allowed)
	}
	i.allowed[q] = struct{}{}
}

// mayAsk reports whether a caller may ask about a subject, as far as hosts matter.
func (c Caller) mayAsk(by scope, of subject) bool {
	if c.Hosts == nil || by == byLease {
		return true
	}
	host, err := parseHost(of.Host)
	return by == byHost && err == nil && slices.Contains(c.Hosts, host)
}

// hosts returns the hosts of a caller for messages.
func (c Caller) hosts() string {
	if len(c.Hosts) == 0 {
		return "not known"
	}
	all := make([]string, 0, len(c.Hosts))
	for _, host := range c.Hosts {
		all = append(all, host.String())
	}
	return strings.Join(all, ", ")
}
