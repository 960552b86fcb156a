package intercept

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// Gate holds requests, or the streams of their answers, until it is opened.
type Gate struct {
	mu      sync.Mutex
	open    chan struct{} // closed while the gate is open
	arrived chan struct{} // closed when the first request has come
	cut     chan struct{} // closed to end the streams
}

// NewGate makes a gate; closed to begin with.
func NewGate() *Gate {
	return &Gate{open: make(chan struct{}), arrived: make(chan struct{}), cut: make(chan struct{})}
}

// Open lets through what waits and what comes.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// Shut holds what comes from now on.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
		g.open = make(chan struct{})
	default:
	}
}

// Arrived returns a channel that is closed when the first request has come to the gate.
func (g *Gate) Arrived() <-chan struct{} { return g.arrived }

// Cut ends the streams that the gate watches over with an error, as a connection that dies does.
func (g *Gate) Cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.cut)
	g.cut = make(chan struct{})
}

func (g *Gate) state() (open, cut chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.arrived:
	default:
		close(g.arrived)
	}
	return g.open, g.cut
}

// Hold holds a request before it is sent. A caller that goes away meanwhile is gone: nothing is sent.
func (g *Gate) Hold(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	open, _ := g.state()
	select {
	case <-open:
		return next.RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// HoldAnswer sends a request and holds the answer.
func (g *Gate) HoldAnswer(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	open, _ := g.state()
	select {
	case <-open:
		return resp, nil
	case <-r.Context().Done():
		_ = resp.Body.Close() // nobody will read it
		return nil, r.Context().Err()
	}
}

// HoldStream sends a request and holds what its answer streams, such as the events of a watch.
func (g *Gate) HoldStream(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	_, cut := g.state()
	resp.Body = &stream{ReadCloser: resp.Body, gate: g, cut: cut, done: r.Context().Done()}
	return resp, nil
}

type stream struct {
	io.ReadCloser
	gate *Gate
	cut  chan struct{}
	done <-chan struct{}
}

// ErrCut is what a stream ends with when its gate is cut.
var ErrCut = errors.New("the connection was cut by the test")

// Read reads ahead and hands over when the gate is open.
func (s *stream) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	got := make(chan result, 1)
	go func() {
		n, err := s.ReadCloser.Read(p)
		got <- result{n, err}
	}()
	var r result
	select {
	case r = <-got:
	case <-s.cut:
		_ = s.ReadCloser.Close() // ends the read
		<-got
		return 0, ErrCut
	}
	open, _ := s.gate.state()
	select {
	case <-open:
		return r.n, r.err
	case <-s.cut:
		_ = s.ReadCloser.Close() // the stream is over
		return 0, ErrCut
	case <-s.done:
		return 0, io.ErrUnexpectedEOF
	}
}
