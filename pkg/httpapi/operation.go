package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// noOperation stands in metrics and logs for requests that fit no route.
const noOperation = "none"

// operation wraps a route with what all have in common: readiness, the deadline, the body's bounds,
// the envelope, metrics and log.
func (s *Service) operation(op route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), allocator.MaxRequestTime)
		defer cancel()
		ctx, end := s.trace(withNotes(ctx), r, op.name)
		r = r.WithContext(ctx)
		data, message, status, err := s.run(w, r, op)
		end(err)
		s.Metrics.took(op.name, time.Since(began))
		if err != nil {
			s.refuse(w, r, op.name, status, asRefusal(err))
			return
		}
		s.Metrics.count(op.name, "")
		respond(w, status, Envelope{Message: message, Result: true, Data: data, RequestID: idOf(r)})
	})
}

// run does an operation. The status goes with the data as well as with the error.
func (s *Service) run(w http.ResponseWriter, r *http.Request, op route) (data any, message string, status int, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("panic in a request", "operation", op.name, "panic", p, "request_id", idOf(r), "stack", string(debug.Stack()))
			status = http.StatusInternalServerError
			err = ipam.Refuse(ipam.ReasonInternal, "internal error; the controller's log has more under request_id %s", idOf(r))
		}
	}()
	var body []byte
	if op.hasBody {
		if body, status, err = readBody(w, r); err != nil {
			return nil, "", status, err
		}
	}
	if err := checkQuery(r, op.query); err != nil {
		return nil, "", http.StatusOK, err
	}
	if err := s.Ready(); err != nil {
		return nil, "", http.StatusServiceUnavailable, ipam.Refuse(ipam.ReasonUnavailable, "not ready: %v", err).WithHint("ask again")
	}
	data, message, err = op.handle(s, r, body)
	return data, message, statusOf(err), err
}

// statusOf maps an error to an HTTP status. Refusals have 200, because clients of the released
// allocator drop the body of anything else; 503 tells a client to ask another replica, or again.
func statusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	switch asRefusal(err).Reason {
	case ipam.ReasonUnavailable, ipam.ReasonOutcomeUnknown:
		return http.StatusServiceUnavailable
	case ipam.ReasonInternal:
		return http.StatusInternalServerError
	default:
		return http.StatusOK
	}
}

func asRefusal(err error) *ipam.Refusal {
	if r, ok := errors.AsType[*ipam.Refusal](err); ok {
		return r
	}
	return ipam.Refuse(ipam.ReasonInternal, "%v", err)
}

// refuse answers with a refusal, counts it and logs it: as an error what should not happen, as a warning, once
// a second at most, what the cluster's operator has to mend. Other refused ADDs come again every few seconds.
func (s *Service) refuse(w http.ResponseWriter, r *http.Request, operation string, status int, why *ipam.Refusal) {
	level := slog.LevelDebug
	switch why.Reason {
	case ipam.ReasonInternal:
		level = slog.LevelError
	case ipam.ReasonForbidden, ipam.ReasonUnavailable, ipam.ReasonOutcomeUnknown:
		s.troubles.Do(func() { level = slog.LevelWarn })
	default:
	}
	s.Log.LogAttrs(r.Context(), level, "request refused", append([]slog.Attr{
		slog.String("operation", operation), slog.Int("status", status), slog.String("reason", string(why.Reason)),
		slog.String("message", why.Message), slog.String("request_id", idOf(r)),
	}, notesOf(r.Context())...)...)
	s.Metrics.count(operation, why.Reason)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", s.retryAfter())
	}
	respond(w, status, Envelope{
		Code: codeOf(why.Reason), Message: why.Message, Reason: why.Reason, Hint: why.Hint, RequestID: idOf(r),
	})
}

// retryAfter is when to come again, in seconds: when about as many writes as wait now are done, or when the API
// server wants writes again; one second where neither is known, and never longer than a request may take.
func (s *Service) retryAfter() string {
	var backlog time.Duration
	if s.Leases != nil {
		backlog = min(s.Leases.Backlog(), allocator.MaxRequestTime)
	}
	return strconv.Itoa(max(1, int(math.Ceil(backlog.Seconds()))))
}

func codeOf(reason ipam.Reason) int {
	for _, info := range ipam.ReasonTable() {
		if info.Reason == reason {
			return info.Code
		}
	}
	return 2
}
