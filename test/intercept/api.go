package intercept

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"
)

// API stands between a client and the API server for one test. It speaks plain HTTP, over which clients send no
// credentials, and adds those of an account.
type API struct {
	// Forward passes a request on. It cuts the connection when the API server does not answer.
	Forward http.Handler

	server *httptest.Server
}

// NewAPI starts a proxy to the API server that gives every request to a handler, which may Forward it.
func NewAPI(t testing.TB, account *rest.Config, handler http.Handler) *API {
	t.Helper()
	target, err := url.Parse(account.Host)
	if err != nil {
		t.Fatal(err)
	}
	tls, err := rest.TLSConfigFor(rest.AnonymousClientConfig(account))
	if err != nil {
		t.Fatal(err)
	}
	upstream := &http.Transport{TLSClientConfig: tls}
	a := &API{
		server: httptest.NewServer(handler),
		Forward: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Header.Set("Authorization", "Bearer "+account.BearerToken)
			},
			Transport:     upstream,
			FlushInterval: -1, // watches
			ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		},
	}
	t.Cleanup(func() {
		a.server.CloseClientConnections()
		a.server.Close()
		upstream.CloseIdleConnections()
	})
	return a
}

// Cut ends all connections of clients.
func (a *API) Cut() { a.server.CloseClientConnections() }

// Config leads a client through the proxy.
func (a *API) Config() *rest.Config { return &rest.Config{Host: a.server.URL} }
