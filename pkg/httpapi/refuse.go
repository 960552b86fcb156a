package httpapi

import (
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// noOperation is the operation in metrics and logs for requests that match no route.
const noOperation = "none"

// refusals answers, counts and logs every refused request.
type refusals struct {
	log     *slog.Logger
	metrics *Metrics
	// backlog estimates the remaining wait of the work in the queue; nil if that is not known.
	backlog  func() time.Duration
	troubles rate.Sometimes
}

func newRefusals(log *slog.Logger, m *Metrics, backlog func() time.Duration) *refusals {
	return &refusals{log: log, metrics: m, backlog: backlog, troubles: rate.Sometimes{Interval: time.Second}}
}

// answer ends a call with a refusal, and with the status of its API.
func (a *refusals) answer(w http.ResponseWriter, r *http.Request, err error) {
	a.answerWith(w, r, callOf(r).codec.status(asRefusal(err)), err)
}

// answerUnheard ends a call before anything was decided. The status is 503 in each API if the request is not at fault:
// the API server does not identify the caller, or a release has to wait. galaxy's own status would be 500, which is for
// errors while a request is carried out.
func (a *refusals) answerUnheard(w http.ResponseWriter, r *http.Request, err error) {
	if asRefusal(err).Reason == ipam.ReasonUnavailable {
		a.answerWith(w, r, http.StatusServiceUnavailable, err)
		return
	}
	a.answer(w, r, err)
}

// answerWith ends a call with a refusal and a status.
func (a *refusals) answerWith(w http.ResponseWriter, r *http.Request, status int, err error) {
	c := callOf(r)
	c.end(err)
	a.metrics.took(c.route.name, time.Since(c.began))
	a.refuse(w, r, c.route.name, status, asRefusal(err), c.codec)
}

func asRefusal(err error) *ipam.Refusal {
	if r, ok := errors.AsType[*ipam.Refusal](err); ok {
		return r
	}
	return ipam.Refuse(ipam.ReasonInternal, "%v", err)
}

// refuse answers with the part of a refusal that the caller may know, counts it, and logs all of it: unexpected errors
// as errors; problems that the cluster's operator must solve or know about as warnings, at most once a second. Other
// refused ADDs are repeated every few seconds anyway.
func (a *refusals) refuse(
	w http.ResponseWriter, r *http.Request, operation string, status int, why *ipam.Refusal, c codec,
) {
	level := slog.LevelDebug
	switch why.Reason {
	case ipam.ReasonInternal:
		level = slog.LevelError
	case ipam.ReasonForbidden, ipam.ReasonUnavailable, ipam.ReasonOverloaded, ipam.ReasonOutcomeUnknown,
		ipam.ReasonUnauthenticated, ipam.ReasonNotPermitted, ipam.ReasonPlainHTTP, ipam.ReasonTooManyRequests:
		a.troubles.Do(func() { level = slog.LevelWarn })
	default:
	}
	if a.log.Enabled(r.Context(), level) {
		a.log.LogAttrs(r.Context(), level, "request refused", append([]slog.Attr{
			slog.String("operation", operation), slog.Int("status", status), slog.String("reason", string(why.Reason)),
			slog.String("message", why.Message), slog.String("request_id", idOf(r)),
		}, requestAttrsOf(r.Context())...)...)
	}
	a.metrics.count(operation, why.Reason)
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if why.Reason == ipam.ReasonTooManyRequests {
		w.Header().Set("Retry-After", comeLater())
		w.Header().Set(headerReason, string(why.Reason))
	}
	if status == http.StatusServiceUnavailable || why.Reason == ipam.ReasonOverloaded {
		w.Header().Set("Retry-After", a.retryAfter(why.Reason))
		w.Header().Set(headerReason, string(why.Reason))
	}
	c.refuse(w, r, status, why.For(forwardingOf(r).reader()))
}

// retryAfter returns the time after which to retry, in seconds. It estimates when the presently waiting writes or
// forwarded requests will be done, or when the API server accepts writes again. It returns one second if neither is
// known, and never more than a request may take. A random part of up to the same length is added, so that callers that
// came together do not return together.
func (a *refusals) retryAfter(why ipam.Reason) string {
	var backlog time.Duration
	if a.backlog != nil {
		backlog = min(a.backlog(), allocator.MaxRequestTime)
	}
	seconds := max(1, int(math.Ceil(backlog.Seconds())))
	if why == ipam.ReasonOverloaded {
		seconds += rand.IntN(seconds + 1)
	}
	return strconv.Itoa(seconds)
}

// comeLater returns the seconds after which a caller that has sent too many may retry. They are random, so that callers
// do not return together.
func comeLater() string { return strconv.Itoa(1 + rand.IntN(4)) }
