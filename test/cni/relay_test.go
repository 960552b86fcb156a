package cni_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"
)

// relay is a replica as a node reaches it: it listens in the node's namespace and passes on to the controller.
type relay struct {
	url    string
	server *http.Server
	// asked counts requests.
	asked atomic.Int32
	// answer answers in place of the controller, where it is set.
	answer atomic.Pointer[http.HandlerFunc]
}

// newRelay makes one that works.
func (n *node) newRelay() *relay {
	n.Helper()
	target, err := url.Parse(n.URL)
	if err != nil {
		n.Fatal(err)
	}
	var listener net.Listener
	n.host.Do(n.T, func() (err error) {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	r := &relay{url: "http://" + listener.Addr().String()}
	r.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, q *http.Request) {
			r.asked.Add(1)
			if answer := r.answer.Load(); answer != nil {
				(*answer)(w, q)
				return
			}
			proxy.ServeHTTP(w, q)
		})}
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(listener) }()
	n.Cleanup(func() {
		_ = r.server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			n.Error(err)
		}
	})
	return r
}

// instead has requests answered by the test; nil for the controller again.
func (r *relay) instead(answer http.HandlerFunc) {
	if answer == nil {
		r.answer.Store(nil)
		return
	}
	r.answer.Store(&answer)
}

// breakLines has the replica break each connection.
func (r *relay) breakLines() {
	r.instead(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
}
