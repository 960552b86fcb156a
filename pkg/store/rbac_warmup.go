package store

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxWarmup is for how long an API server may forbid what it permitted before and still pass for one that has just
// started. One that needs longer, or whose roles were taken away, is believed.
const maxWarmup = time.Minute

// AwaitRoles makes requests wait for an API server that has just started: until it has read the roles it forbids
// everything to everybody. A request may be forbidden about a resource of which this process was permitted something
// before. It is answered with 429 and comes again in a second, as the store and client-go do with what was turned
// away unseen, for as long as the request may take. What was never permitted is forbidden at once, and so is what an
// admission webhook or policy refuses: such a request has been seen.
func AwaitRoles(log *slog.Logger) func(http.RoundTripper) http.RoundTripper {
	return newRBACWarmup(log, time.Now).wrap
}

// rbacWarmup has what the API server has permitted, and forbids now.
type rbacWarmup struct {
	log *slog.Logger
	now func() time.Time

	mu        sync.Mutex
	permitted map[right]bool
	forbidden map[string]time.Time // by method and right: since when
}

func newRBACWarmup(log *slog.Logger, now func() time.Time) *rbacWarmup {
	return &rbacWarmup{log: log, now: now, permitted: map[right]bool{}, forbidden: map[string]time.Time{}}
}

func (o *rbacWarmup) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		switch {
		case err != nil:
			if r.Context().Err() == nil {
				o.restart()
			}
			return nil, err
		case resp.StatusCode == http.StatusForbidden:
			return o.judge(r, resp)
		case resp.StatusCode < http.StatusInternalServerError && resp.StatusCode != http.StatusUnauthorized &&
			resp.StatusCode != http.StatusTooManyRequests:
			o.permit(r)
		}
		return resp, nil
	})
}

// permit notes that a request was permitted; what the API server then made of it is another matter.
func (o *rbacWarmup) permit(r *http.Request) {
	about := rightOf(r.URL.Path)
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.had(about) {
		o.permitted[about] = true
	}
	delete(o.forbidden, r.Method+" "+about.String())
}

// restart forgets since when requests are forbidden that are believed to be so: the API server did not answer, and may
// be another one when it answers again.
func (o *rbacWarmup) restart() {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.forbidden, func(_ string, since time.Time) bool { return o.now().Sub(since) >= maxWarmup })
}

// judge passes on that a request is forbidden, or turns it away for a while.
func (o *rbacWarmup) judge(r *http.Request, resp *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it is read
	if err != nil {
		return nil, err
	}
	if !byAuthorizer(body) || !o.waits(r) {
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return resp, nil
	}
	var status metav1.Status
	_ = json.Unmarshal(body, &status) // one in protobuf does without the message
	answer := respond(r, metav1.Status{
		Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Message: "the API server forbids what it permitted before, as it does until it has read the roles: " +
			status.Message,
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
	})
	answer.Header.Set("Retry-After", "1")
	return answer, nil
}

// waits reports whether what is forbidden now may be permitted soon. Only the first time of several is logged.
func (o *rbacWarmup) waits(r *http.Request) bool {
	about := rightOf(r.URL.Path)
	key := r.Method + " " + about.String()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.had(about) {
		return false
	}
	since, again := o.forbidden[key]
	if !again {
		since = o.now()
		o.forbidden[key] = since
		o.log.Warn("the API server forbids what it permitted before; waiting in case it has just started", "method",
			r.Method, "resource", about.resource, "namespace", about.namespace)
	}
	return o.now().Sub(since) < maxWarmup
}

// byAuthorizer reports whether a body, in JSON or protobuf, states that a user may not do something, in the words of
// the API server itself, which are the same for every kind of authorization.
func byAuthorizer(body []byte) bool { return bytes.Contains(body, []byte(`" cannot `)) }

// ForbiddenByRole reports whether an error says that a user may not do something at all, and not that a webhook or
// policy refuses this object.
func ForbiddenByRole(err error) bool {
	return apierrors.IsForbidden(err) && byAuthorizer([]byte(err.Error()))
}

// right is what a request needs one for: a group and resource, in a namespace or in none.
type right struct{ namespace, resource string }

func (r right) String() string { return r.namespace + " " + r.resource }

// had reports whether something of it was permitted before, there or in the whole cluster. A Role in one namespace says
// nothing about another.
func (o *rbacWarmup) had(r right) bool { return o.permitted[r] || o.permitted[right{"", r.resource}] }

// rightOf reads the path of a request: "/apis/GROUP/VERSION/[namespaces/NAME/]RESOURCE/…".
func rightOf(path string) (r right) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group, rest := "", parts
	switch {
	case len(parts) > 3 && parts[0] == "apis":
		group, rest = parts[1], parts[3:]
	case len(parts) > 2 && parts[0] == "api":
		rest = parts[2:]
	}
	if len(rest) > 2 && rest[0] == "namespaces" {
		r.namespace, rest = rest[1], rest[2:]
	}
	r.resource = group + "/" + rest[0]
	return r
}
