//go:build linux

package node

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"
)

// door is what the plugins take for the controller: it passes all on to it, unless a test stands in it.
type door struct {
	url    string
	server *http.Server
	pass   http.Handler

	mu    sync.Mutex
	stand func(w http.ResponseWriter, r *http.Request, pass http.Handler)
}

func openDoor(listen, controller string) (*door, error) {
	target, err := url.Parse(controller)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, err
	}
	d := &door{url: "http://" + listen, pass: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		// A connection for each request: a controller that is killed and comes back is met anew.
		Transport: &http.Transport{DisableKeepAlives: true},
		// As if there was no door.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	d.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			d.mu.Lock()
			stand := d.stand
			d.mu.Unlock()
			if stand == nil {
				d.pass.ServeHTTP(w, r)
				return
			}
			stand(w, r, d.pass)
		})}
	go func() { _ = d.server.Serve(listener) }()
	return d, nil
}

func (d *door) close() error { return d.server.Close() }

// in has a test stand in the door, until it leaves or ends.
func (d *door) in(t *testing.T, stand func(w http.ResponseWriter, r *http.Request, pass http.Handler)) (leave func()) {
	t.Helper()
	set := func(stand func(w http.ResponseWriter, r *http.Request, pass http.Handler)) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.stand = stand
	}
	set(stand)
	leave = func() { set(nil) }
	t.Cleanup(leave)
	return leave
}

// moment is when a request is held.
type moment int

const (
	beforeController moment = iota // the controller has not seen it
	afterController                // the controller has answered, and the plugin has not seen it
)

// hold has the first request of a method wait at the door. held is closed when it waits, and it goes on when release is called,
// at the latest at the end of the test. Others pass.
func (d *door) hold(t *testing.T, method string, at moment) (held <-chan struct{}, release func()) {
	t.Helper()
	var once sync.Once
	waits, goesOn := make(chan struct{}), make(chan struct{})
	leave := d.in(t, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		mine := false
		if r.Method == method {
			once.Do(func() { mine = true })
		}
		switch {
		case !mine:
			pass.ServeHTTP(w, r)
		case at == beforeController:
			close(waits)
			<-goesOn
			pass.ServeHTTP(w, r)
		default:
			// The controller serves it to the end, whatever becomes of who asked.
			answer := httptest.NewRecorder()
			pass.ServeHTTP(answer, r.Clone(context.WithoutCancel(r.Context())))
			close(waits)
			<-goesOn
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes())
		}
	})
	return waits, sync.OnceFunc(func() {
		close(goesOn)
		leave()
	})
}

// shut has nobody get through, as when no replica is there.
func (d *door) shut(t *testing.T) (open func()) {
	t.Helper()
	return d.in(t, func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) })
}

// errTimeout is for what did not come in time.
var errTimeout = errors.New("it did not come within a minute")

// comes waits for a channel to be closed.
func comes(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("%s: %v", what, errTimeout)
	}
}
