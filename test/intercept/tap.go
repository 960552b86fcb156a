// Package intercept counts, holds and breaks requests on their way to a real API server, so that tests
// choose the moment at which things happen instead of hoping for it.
package intercept

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Match chooses requests.
type Match func(*http.Request) bool

// All matches requests that all of the given ones match.
func All(ms ...Match) Match {
	return func(r *http.Request) bool {
		for _, m := range ms {
			if !m(r) {
				return false
			}
		}
		return true
	}
}

// Of matches the requests about a resource: its collection and its objects.
func Of(resource string) Match {
	return func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/"+resource) || strings.Contains(r.URL.Path, "/"+resource+"/")
	}
}

// Named matches the requests about one object.
func Named(name string) Match {
	return func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/"+name) }
}

// Method matches a verb of HTTP.
func Method(methods ...string) Match {
	return func(r *http.Request) bool {
		return slices.Contains(methods, r.Method)
	}
}

// Writes and Watches match by what a request does.
var (
	Writes  = Method(http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete)
	Watches = Match(func(r *http.Request) bool { return r.URL.Query().Get("watch") != "" })
)

// Hook stands in for next.
type Hook func(r *http.Request, next http.RoundTripper) (*http.Response, error)

// Tap is a transport that notes every request and lets hooks stand in for it.
type Tap struct {
	mu    sync.Mutex
	seen  []*http.Request
	hooks []*hooked
}

type hooked struct {
	match Match
	hook  Hook
}

// Wrap puts the tap in front of a transport.
func (t *Tap) Wrap(next http.RoundTripper) http.RoundTripper { return tapped{t, next} }

type tapped struct {
	tap  *Tap
	next http.RoundTripper
}

// RoundTrip notes the request and lets the newest hook that matches have it.
func (t tapped) RoundTrip(r *http.Request) (*http.Response, error) {
	t.tap.mu.Lock()
	t.tap.seen = append(t.tap.seen, r)
	hooks := t.tap.hooks
	t.tap.mu.Unlock()
	for _, h := range slices.Backward(hooks) { // a match may look at the counts
		if h.match(r) {
			return h.hook(r, t.next)
		}
	}
	return t.next.RoundTrip(r)
}

// On makes a hook stand in for the requests that match, until remove is called.
func (t *Tap) On(m Match, h Hook) (remove func()) {
	entry := &hooked{m, h}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hooks = append(slices.Clip(t.hooks), entry)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for i, e := range t.hooks {
			if e == entry {
				t.hooks = slices.Concat(t.hooks[:i], t.hooks[i+1:])
				return
			}
		}
	}
}

// Count returns how many requests matched so far.
func (t *Tap) Count(m Match) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, r := range t.seen {
		if m(r) {
			n++
		}
	}
	return n
}

// Forget starts the counts anew.
func (t *Tap) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = nil
}

// Fail answers with an error; nothing is sent.
func Fail(err error) Hook {
	return func(*http.Request, http.RoundTripper) (*http.Response, error) { return nil, err }
}

// LoseAnswer sends the request, waits for the answer and throws it away for an error.
func LoseAnswer(err error) Hook {
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, failed := next.RoundTrip(r)
		if failed != nil {
			return nil, failed
		}
		_, _ = io.Copy(io.Discard, resp.Body) // what it says is not wanted
		_ = resp.Body.Close()
		return nil, err
	}
}

// Answer answers with a Status of the API's; nothing is sent. Seconds above 0 go into Retry-After.
func Answer(code int, reason metav1.StatusReason, seconds int) Hook {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		body, err := json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "told to say so",
		})
		if err != nil {
			return nil, err
		}
		resp := Respond(r, code, body)
		if seconds > 0 {
			resp.Header.Set("Retry-After", strconv.Itoa(seconds))
		}
		return resp, nil
	}
}

// Respond makes an answer to a request.
func Respond(r *http.Request, code int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  http.Header{"Content-Type": {"application/json"}},
		Request: r, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}
}
