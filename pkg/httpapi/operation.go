package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/limiter"
)

// noOperation stands in metrics and logs for requests that fit no route.
const noOperation = "none"

// operation wraps a route with what all have in common: readiness, the deadline, the body's bounds, the leader, metrics
// and log. What the leader answers is the leader's to count and log.
func (s *Service) operation(op route, c codec) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		status := http.StatusOK
		limit, err := readTimeout(r)
		if err != nil {
			status = c.status(asRefusal(err))
		}
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		ctx, end := s.trace(withRequestAttrs(ctx), r, op.name)
		r = readForwarding(r).on(r.WithContext(ctx))
		var body []byte
		var data any
		var message string
		if err == nil {
			if err = s.greet(r, op); err != nil {
				status = unheard(c, err)
			}
		}
		if err == nil {
			var release func()
			body, release, status, err = s.admit(w, r, op, c)
			defer release()
		}
		if err == nil {
			var leave func()
			if r, leave, err = s.come(r, op, body); err != nil {
				status = unheard(c, err)
			}
			defer leave()
		}
		var list *listing
		if err == nil && op.rows != nil {
			list = s.lists.listing(w, op.rows(r.URL.RawQuery))
			defer list.close()
			w = list
			if op.forward { // what the leader answers takes room here, too
				err = list.reserve()
			}
		}
		if err == nil && op.forward {
			var answer *reply
			if answer, err = s.Forwarder.forward(r, body); answer != nil {
				answer.passOn(w)
				end(nil)
				return
			}
		}
		if err == nil {
			if err = s.compare(w, r, op); err != nil {
				status = unheard(c, err)
			}
		}
		if err == nil && list != nil {
			err = list.begin(ctx, forwardingOf(r).caller)
		}
		if err != nil && status == http.StatusOK {
			status = c.status(asRefusal(err))
		}
		if err == nil {
			if data, message, err = s.decide(r, op, body); err != nil {
				status = c.status(asRefusal(err))
			}
		}
		end(err)
		s.Metrics.took(op.name, time.Since(began))
		if err != nil {
			s.refuse(w, r, op.name, status, asRefusal(err), c)
			return
		}
		s.Metrics.count(op.name, "")
		s.giveReceipt(w, data)
		c.done(w, r, data, message)
	})
}

// unheard returns the status of a refusal before anything was decided. It is 503 in each API where the request is not
// at fault: the API server does not say who calls, or a release has to wait. galaxy's own status would be 500, which
// is for what went wrong while a request was done.
func unheard(c codec, err error) int {
	why := asRefusal(err)
	if why.Reason == ipam.ReasonUnavailable {
		return http.StatusServiceUnavailable
	}
	return c.status(why)
}

// admit reads a request's body and reports whether the request can be decided. release gives the memory of the body
// back. The status goes with the error.
func (s *Service) admit(
	w http.ResponseWriter, r *http.Request, op route, c codec,
) (body []byte, release func(), status int, err error) {
	release = func() {}
	switch {
	case op.hasBody && c.maxBody() > maxBody:
		body, release, status, err = s.memory.read(w, r, c.maxBody(), senderOf(r))
	case op.hasBody:
		body, status, err = s.memory.readSmall(w, r, c.maxBody(), senderOf(r))
	}
	if err != nil {
		return nil, release, status, err
	}
	if err := c.checkQuery(r, op.query); err != nil {
		return nil, release, c.status(asRefusal(err)), err
	}
	if err := s.Ready(); err != nil {
		return nil, release, http.StatusServiceUnavailable, ipam.Refuse(ipam.ReasonUnavailable, "not ready: %v", err).
			WithHint("ask again")
	}
	return body, release, http.StatusOK, nil
}

// come records when a request came, and admits or refuses it. leave has to be called when it has ended.
func (s *Service) come(r *http.Request, op route, body []byte) (_ *http.Request, leave func(), err error) {
	leave = func() {}
	if r, err = s.arrive(r, body); err != nil {
		return r, leave, err
	}
	r, err = s.identify(r, op, body)
	if h := forwardingOf(r); op.access.where == ofSubject && h.by.Name != "" && h.by.Hosts == nil {
		h.namespace = subjectOf(r, op, body).Namespace // what RBAC was asked about
		r = h.on(r)
	}
	audit(r)
	if err != nil || !op.adds() {
		return r, leave, err
	}
	ended, err := s.admitAdd(body)
	if err != nil {
		return r, leave, err
	}
	return r.WithContext(limiter.Late(r.Context(), forwardingOf(r).socketAge)), ended, nil
}

// decide does an operation.
func (s *Service) decide(r *http.Request, op route, body []byte) (data any, message string, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("panic in a request", "operation", op.name, "panic", p, "request_id", idOf(r), "stack",
				string(debug.Stack()))
			err = ipam.Refuse(ipam.ReasonInternal, "internal error; the controller's log has more under request_id %s", idOf(r))
		}
	}()
	return op.handle(s, r, body)
}

func asRefusal(err error) *ipam.Refusal {
	if r, ok := errors.AsType[*ipam.Refusal](err); ok {
		return r
	}
	return ipam.Refuse(ipam.ReasonInternal, "%v", err)
}

// refuse answers with what the caller may know of a refusal, counts it and logs all of it: as an error what should not
// happen, as a warning, once a second at most, what the cluster's operator has to mend or to know. Other refused ADDs
// come again every few seconds.
func (s *Service) refuse(
	w http.ResponseWriter, r *http.Request, operation string, status int, why *ipam.Refusal, c codec,
) {
	level := slog.LevelDebug
	switch why.Reason {
	case ipam.ReasonInternal:
		level = slog.LevelError
	case ipam.ReasonForbidden, ipam.ReasonUnavailable, ipam.ReasonOverloaded, ipam.ReasonOutcomeUnknown,
		ipam.ReasonUnauthenticated, ipam.ReasonNotPermitted, ipam.ReasonPlainHTTP, ipam.ReasonTooManyRequests:
		s.troubles.Do(func() { level = slog.LevelWarn })
	default:
	}
	if s.Log.Enabled(r.Context(), level) {
		s.Log.LogAttrs(r.Context(), level, "request refused", append([]slog.Attr{
			slog.String("operation", operation), slog.Int("status", status), slog.String("reason", string(why.Reason)),
			slog.String("message", why.Message), slog.String("request_id", idOf(r)),
		}, requestAttrsOf(r.Context())...)...)
	}
	s.Metrics.count(operation, why.Reason)
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if why.Reason == ipam.ReasonTooManyRequests {
		w.Header().Set("Retry-After", comeLater())
		w.Header().Set(headerReason, string(why.Reason))
	}
	if status == http.StatusServiceUnavailable || why.Reason == ipam.ReasonOverloaded {
		w.Header().Set("Retry-After", s.retryAfter(why.Reason))
		w.Header().Set(headerReason, string(why.Reason))
	}
	c.refuse(w, r, status, why.For(forwardingOf(r).reader()))
}

// retryAfter returns when to come again, in seconds: when about as many writes or forwarded requests as wait now are
// done, or when the API server wants writes again; one second where neither is known, and never longer than a request
// may take. As much again is added by chance for those who came with many others: they are not to come back together.
func (s *Service) retryAfter(why ipam.Reason) string {
	var backlog time.Duration
	if s.Leases != nil {
		backlog = min(max(s.Leases.Backlog(), s.Forwarder.backlog()), allocator.MaxRequestTime)
	}
	seconds := max(1, int(math.Ceil(backlog.Seconds())))
	if why == ipam.ReasonOverloaded {
		seconds += rand.IntN(seconds + 1)
	}
	return strconv.Itoa(seconds)
}

func codeOf(reason ipam.Reason) int {
	for _, info := range ipam.ReasonTable() {
		if info.Reason == reason {
			return info.Code
		}
	}
	return 2
}
