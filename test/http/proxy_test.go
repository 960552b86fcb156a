package http_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// apiProxy does to the requests of a controller to the API server what a rule says.
type apiProxy struct {
	api     *intercept.API
	forward http.Handler

	mu     sync.Mutex
	rule   rule
	writes []string // "PUT /…/name" of the leases, in order
}

// rule treats a request, or returns false and leaves it to the proxy to pass on.
type rule func(p *apiProxy, w http.ResponseWriter, r *http.Request) bool

// newProxy starts a proxy to a control plane.
func newProxy(t *testing.T, cp *controlplane.ControlPlane) *apiProxy {
	t.Helper()
	p := &apiProxy{}
	p.api = intercept.NewAPI(t, account(t, cp), p)
	p.forward = p.api.Forward
	return p
}

// config leads a controller through the proxy.
func (p *apiProxy) config() *rest.Config { return p.api.Config() }

func (p *apiProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	rule := p.rule
	if isLeaseWrite(r) {
		p.writes = append(p.writes, r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	}
	p.mu.Unlock()
	if rule == nil || !rule(p, w, r) {
		p.forward.ServeHTTP(w, r)
	}
}

// set has a rule applied to what comes from now on; nil passes all.
func (p *apiProxy) set(r rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = r
}

// takeWrites returns the writes of leases since the last call.
func (p *apiProxy) takeWrites() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.writes
	p.writes = nil
	return w
}

func isLeaseWrite(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/bcsnetips") && r.Method != http.MethodGet
}

// away cuts every connection and answers nothing, as a machine that is off.
func away(*apiProxy, http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }

// loseAnswer passes writes of leases on and cuts the connection in place of the answer.
func loseAnswer(p *apiProxy, _ http.ResponseWriter, r *http.Request) bool {
	if !isLeaseWrite(r) {
		return false
	}
	p.forward.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// gate holds requests until it is opened.
type gate struct {
	site          *site
	arrived, open chan struct{}
	once          sync.Once
}

// newGate makes a gate for what is written for an ADD of a site. The replica that leads writes leases of other tests'
// pools, too: those pass.
func newGate(s *site) *gate {
	return &gate{site: s, arrived: make(chan struct{}), open: make(chan struct{})}
}

// leaseWrites is the rule that holds, at the gate, the writes that make a lease of the site Active.
func (g *gate) leaseWrites(_ *apiProxy, _ http.ResponseWriter, r *http.Request) bool {
	if !isLeaseWrite(r) {
		return false
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	about := r.URL.Path + " " + string(body)
	if !strings.Contains(about, g.site.Net+".") || !strings.Contains(about, string(v1.IPActive)) {
		return false
	}
	g.once.Do(func() { close(g.arrived) })
	select {
	case <-g.open:
	case <-r.Context().Done():
	}
	return false
}

// waitArrived returns when a request is held.
func (g *gate) waitArrived(t *testing.T) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		select {
		case <-g.arrived:
			return nil
		default:
			return errors.New("no request has come")
		}
	})
}

// inBackground sends a request and returns where its answer comes.
func inBackground(ctx context.Context, c caller, method, path string, body any) <-chan result {
	out := make(chan result, 1)
	go func() {
		a, err := c.send(ctx, method, path, body)
		out <- result{a, err}
	}()
	return out
}

type result struct {
	answer
	err error
}

func (r result) must(t *testing.T) answer {
	t.Helper()
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.answer
}
