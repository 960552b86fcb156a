// Package apiserver is an API server in memory. Requests come through an http.RoundTripper, nothing is sent over a
// socket, and all its time comes from package time, so it works in the bubbles of testing/synctest. Where the
// controller depends on the real server's behaviour, it behaves the same; TestConformance sends both the same requests.
//
// It lacks what the controller does not use: authentication, managed fields, conversion, tables, protobuf, and of
// server-side apply everything but the forced apply of one owner.
package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Server holds the objects of all kinds.
type Server struct {
	// Now is the server's clock.
	Now func() time.Time
	// Bookmarks is the interval of a watch's bookmarks, which report its progress.
	Bookmarks time.Duration
	// Written is called for every write with the resource and the object as JSON. gone means that the write deleted the
	// object.
	Written func(resource string, body []byte, gone bool)

	mu       sync.Mutex
	kinds    map[string]*kind // by "group/version/resource"
	version  uint64           // of the last write
	first    uint64           // the version before the first of events
	events   []event
	watchers []*watcher
	made     map[string]int // how many objects of each path
}

// event is one write.
type event struct {
	kind     *kind
	version  uint64
	old, now *object // old is nil for a new object, now for a deleted one
}

// New returns a server with the Kubernetes kinds that the controller uses and the kinds of the CRDs.
func New() (*Server, error) {
	s := &Server{
		Now: time.Now, Bookmarks: time.Minute, kinds: map[string]*kind{}, made: map[string]int{}, version: 1000,
		first: 1000,
	}
	ours, err := customKinds()
	if err != nil {
		return nil, err
	}
	for _, k := range append(builtIn(), ours...) {
		k.objects = map[string]*object{}
		s.kinds[k.path()] = k
	}
	return s, nil
}

// Version returns the version of the last write.
func (s *Server) Version() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Lag returns the delay of a watch event about an object, given by its key. Each watch has its own Lag, which is called
// once for each of its events, in order.
type Lag func(resource, key string) time.Duration

// RoundTrip serves a request at once.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) { return s.Serve(r, nil), nil }

// Serve serves a request. lag delays the events of a watch; nil means no delay.
func (s *Server) Serve(r *http.Request, lag Lag) *http.Response {
	body, err := io.ReadAll(bodyOf(r))
	if err != nil {
		return s.refuse(r, badRequest("reading the body: %v", err))
	}
	if answer := s.discovers(r); answer != nil {
		return answer
	}
	t, problem := s.target(r)
	if problem != nil {
		return s.refuse(r, problem)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodGet && t.name == "" && isTrue(t.query.Get("watch")) {
		return s.watch(r, t, lag)
	}
	code, answer, problem := s.do(r, t, body)
	if problem != nil {
		return s.refuse(r, problem)
	}
	return s.respond(r, code, answer)
}

func (s *Server) do(r *http.Request, t target, body []byte) (code int, answer []byte, problem *problem) {
	switch r.Method {
	case http.MethodGet:
		if t.name == "" {
			return s.list(t)
		}
		return s.get(t)
	case http.MethodPost:
		return s.create(t, body)
	case http.MethodPut:
		return s.update(t, body)
	case http.MethodPatch:
		return s.patch(t, body, r.Header.Get("Content-Type"))
	case http.MethodDelete:
		return s.remove(t, body)
	default:
		return 0, nil, refusal(http.StatusMethodNotAllowed, "MethodNotAllowed",
			"the server does not allow this method on the requested resource")
	}
}

func bodyOf(r *http.Request) io.Reader {
	if r.Body == nil {
		return http.NoBody
	}
	return r.Body
}

// respond answers with a body.
func (s *Server) respond(r *http.Request, code int, body []byte) *http.Response {
	resp := s.header(r, code)
	resp.ContentLength = int64(len(body))
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp
}

func (s *Server) header(r *http.Request, code int) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{"Content-Type": {"application/json"}, "Date": {s.Now().UTC().Format(http.TimeFormat)}},
		Request:    r,
	}
}

func (s *Server) refuse(r *http.Request, p *problem) *http.Response {
	resp := s.respond(r, int(p.Code), p.body())
	if p.Reason == unserved {
		resp.Header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	if p.Details != nil && p.Details.RetryAfterSeconds > 0 {
		resp.Header.Set("Retry-After", fmt.Sprint(p.Details.RetryAfterSeconds))
	}
	return resp
}

func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return body
}

func isTrue(text string) bool { return text == "true" || text == "1" }
