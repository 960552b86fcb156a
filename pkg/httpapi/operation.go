package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// operation returns the handler of a route: the common middlewares in order, then the route's own function. Handler
// wraps all paths in further middlewares; extender has its own chain.
func (s *Service) operation(op route, c codec) http.Handler {
	return through(http.HandlerFunc(s.do),
		s.begin(op, c),       // deadline, span
		s.callers.greet,      // bodies of unknown callers are not read
		s.limits.readBody,    // rate of the sender, memory
		s.admit,              // query, readiness
		s.callers.arrive,     // time of arrival, and proof of the forwarding replica
		s.callers.identify,   // permission, and rate
		s.limits.admitAdd,    // number of ADDs in progress
		s.limits.reserveList, // memory for the answer
		s.options.Forwarder.leaderFirst(s.refusals), // the leader answers
		s.receipts.compareStore,                     // the store must match the node's receipt
		s.limits.beginList,                          // lists take turns
	)
}

// through wraps a handler in middlewares, the first one outermost.
func through(h http.Handler, all ...middleware) http.Handler {
	for _, m := range slices.Backward(all) {
		h = m(h)
	}
	return h
}

// begin creates the call of a request, with a deadline and, if tracing is on, a span.
func (s *Service) begin(op route, c codec) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			of := &call{route: op, codec: c, began: time.Now(), forwarding: readForwarding(r)}
			limit, err := readTimeout(r)
			ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), callKey{}, of), limit)
			defer cancel()
			ctx, of.end = startSpan(ctx, s.options.Tracing, r, op.name)
			if r = r.WithContext(ctx); err != nil {
				s.refusals.answer(w, r, err)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// admit refuses requests that cannot be decided.
func (s *Service) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r)
		if err := c.codec.checkQuery(r, c.route.query); err != nil {
			s.refusals.answer(w, r, err)
			return
		}
		if err := s.ready(); err != nil {
			s.refusals.answerWith(w, r, http.StatusServiceUnavailable, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ready returns a refusal while no request can be decided.
func (s *Service) ready() error {
	if err := s.options.Ready(); err != nil {
		return ipam.Refuse(ipam.ReasonUnavailable, "not ready: %v", err).WithHint("ask again")
	}
	return nil
}

// do carries out an operation and answers. Requests that the leader answers do not reach it: the leader counts and logs
// them.
func (s *Service) do(w http.ResponseWriter, r *http.Request) {
	c := callOf(r)
	var data any
	var message string
	err := decide(s.options.Log, r, func() (err error) {
		data, message, err = c.route.handle(r, c.body)
		return err
	})
	if err != nil {
		s.refusals.answer(w, r, err)
		return
	}
	s.ended(r, "")
	s.receipts.give(w, data)
	c.codec.done(w, r, data, message)
}

// ended counts an answered request. The reason is for metrics: an answer may be negative.
func (s *Service) ended(r *http.Request, reason ipam.Reason) {
	c := callOf(r)
	c.end(nil)
	s.options.Metrics.took(c.route.name, time.Since(c.began))
	s.options.Metrics.count(c.route.name, reason)
}

// decide calls a function that decides a request. If the function panics, the stack is logged and the request refused.
func decide(log *slog.Logger, r *http.Request, by func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic in a request", "operation", callOf(r).route.name, "panic", p, "request_id", idOf(r),
				"stack", string(debug.Stack()))
			err = ipam.Refuse(ipam.ReasonInternal, "internal error; the controller's log has more under request_id %s",
				idOf(r))
		}
	}()
	return by()
}
