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

// maxWarmup is the time for which an API server that forbids formerly permitted requests may count as just started.
// After that, the refusal is accepted.
const maxWarmup = time.Minute

// AwaitRoles makes requests wait for an API server that has just started, which forbids everything until it has read
// the roles. If a request is forbidden, but this process was permitted something on that resource before, the answer
// becomes 429. The store and client-go then repeat the request after a second, for as long as it may take. Requests
// that were never permitted are forbidden at once, and so are those that an admission webhook or policy refuses,
// because such a request was authorized.
func AwaitRoles(log *slog.Logger) func(http.RoundTripper) http.RoundTripper {
	return newRBACWarmup(log, time.Now).wrap
}

// rbacWarmup records which requests the API server has permitted before and forbids now.
type rbacWarmup struct {
	log *slog.Logger
	now func() time.Time

	mu        sync.Mutex
	permitted map[right]bool
	forbidden map[string]time.Time // by method and right: when it was first forbidden
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

// permit records that a request was permitted, whatever its outcome.
func (o *rbacWarmup) permit(r *http.Request) {
	about := rightOf(r.URL.Path)
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.had(about) {
		o.permitted[about] = true
	}
	delete(o.forbidden, r.Method+" "+about.String())
}

// restart forgets the requests that count as permanently forbidden: the API server did not answer, and may be another
// one when it answers again.
func (o *rbacWarmup) restart() {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.forbidden, func(_ string, since time.Time) bool { return o.now().Sub(since) >= maxWarmup })
}

// judge passes on a forbidden answer, or replaces it by a temporary rejection.
func (o *rbacWarmup) judge(r *http.Request, resp *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // the body was already read
	if err != nil {
		return nil, err
	}
	if !byAuthorizer(body) || !o.waits(r) {
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return resp, nil
	}
	var status metav1.Status
	_ = json.Unmarshal(body, &status) // for protobuf, the message is not needed
	answer := respond(r, metav1.Status{
		Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Message: "the API server forbids what it permitted before, until it has read the roles: " +
			status.Message,
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
	})
	answer.Header.Set("Retry-After", "1")
	return answer, nil
}

// waits reports whether a forbidden request may be permitted soon. Only the first one is logged.
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

// byAuthorizer reports whether a body, in JSON or protobuf, says that a user lacks a permission. It recognizes the API
// server's own words, which are the same for every authorizer.
func byAuthorizer(body []byte) bool { return bytes.Contains(body, []byte(`" cannot `)) }

// ForbiddenByRole reports whether an error says that a user lacks a permission, and not that a webhook or policy
// refuses this object.
func ForbiddenByRole(err error) bool {
	return apierrors.IsForbidden(err) && byAuthorizer([]byte(err.Error()))
}

// right identifies the permission for a request: a group and resource, in a namespace or in none.
type right struct{ namespace, resource string }

func (r right) String() string { return r.namespace + " " + r.resource }

// had reports whether a request for the resource was permitted before, in that namespace or in the whole cluster. A
// Role in one namespace proves nothing about another.
func (o *rbacWarmup) had(r right) bool { return o.permitted[r] || o.permitted[right{"", r.resource}] }

// rightOf parses the path of a request: "/apis/GROUP/VERSION/[namespaces/NAME/]RESOURCE/…".
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
