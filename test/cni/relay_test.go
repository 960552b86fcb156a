package cni_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
)

// relay is a replica as a node reaches it: it listens in the node's namespace and passes on to the controller. Over
// https it has a certificate of its own, and passes the token on.
type relay struct {
	url    string
	server *httptest.Server
	// asked counts requests.
	asked atomic.Int32
	// answer answers in place of the controller, where it is set.
	answer atomic.Pointer[http.HandlerFunc]
}

// newRelay makes one that works.
func (n *node) newRelay() *relay {
	n.Helper()
	return n.relayTo(n.secureURL(), true)
}

// plainRelay makes one that is asked over plain HTTP from the controller's own machine, and asks so.
func (n *node) plainRelay() *relay {
	n.Helper()
	return n.relayTo(n.URL, false)
}

func (n *node) relayTo(controller string, secure bool) *relay {
	n.Helper()
	target, err := url.Parse(controller)
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
		Transport: shared.caller.Transport,
	}
	r := &relay{}
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.asked.Add(1)
		if answer := r.answer.Load(); answer != nil {
			(*answer)(w, q)
			return
		}
		proxy.ServeHTTP(w, q)
	}))
	_ = r.server.Listener.Close()
	r.server.Listener = listener
	if secure {
		r.server.StartTLS()
	} else {
		r.server.Start()
	}
	n.Cleanup(r.server.Close)
	r.url = r.server.URL
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
