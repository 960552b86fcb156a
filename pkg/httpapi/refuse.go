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

// noOperation stands in metrics and logs for requests that fit no route.
const noOperation = "none"

// refusals answers what is not done, counts it and logs it. Everything that is refused comes through here.
type refusals struct {
	log     *slog.Logger
	metrics *Metrics
	// backlog is about how long what waits now still waits; nil where that is not known.
	backlog  func() time.Duration
	troubles rate.Sometimes
}

func newRefusals(log *slog.Logger, m *Metrics, backlog func() time.Duration) *refusals {
	return &refusals{log: log, metrics: m, backlog: backlog, troubles: rate.Sometimes{Interval: time.Second}}
}

// answer ends a call with a refusal, and with the status that its API has for it.
func (a *refusals) answer(w http.ResponseWriter, r *http.Request, err error) {
	a.answerWith(w, r, callOf(r).codec.status(asRefusal(err)), err)
}

// answerUnheard ends a call before anything was decided. The status is 503 in each API if the request is not at fault:
// the API server does not say who calls, or a release has to wait. galaxy's own status would be 500, which is for what
// went wrong while a request was done.
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

// refuse answers with what the caller may know of a refusal, counts it and logs all of it: as an error what should not
// happen, as a warning, once a second at most, what the cluster's operator has to mend or to know. Other refused ADDs
// come again every few seconds.
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

// retryAfter returns when to come again, in seconds: when about as many writes or forwarded requests as wait now are
// done, or when the API server wants writes again; one second where neither is known, and never longer than a request
// may take. As much again is added by chance for those who came with many others: they are not to come back together.
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

// comeLater returns after how many seconds a caller that has sent too many may come again: not all at once.
func comeLater() string { return strconv.Itoa(1 + rand.IntN(4)) }
