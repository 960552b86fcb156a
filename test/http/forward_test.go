package http_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// What changes something is answered by the leader, whoever is asked, and passed on byte for byte; what only looks is
// answered where it was asked.
func TestForward(t *testing.T) {
	t.Parallel()
	leader, follower := newGroup(t).led()
	l, f := idOf(t, leader.caller()), idOf(t, follower.caller())
	s := newSite(t)
	s.pool(12, nil)
	s.knownTo(leader.caller(), follower.caller())
	s.call = follower.caller()
	s.pod("web-0")
	body := s.request(newID(), "web-0")
	add := func(c caller) answer {
		return c.do(t, "POST", prefix, body, "X-Request-Id", "the-same").answeredBy(t, l)
	}
	first := add(follower.caller())
	address := first.done(t)["ipAddr"].(string)
	if direct := add(leader.caller()); !bytes.Equal(direct.Raw, first.Raw) {
		t.Errorf("through the follower %s, from the leader %s", first.Raw, direct.Raw)
	}
	s.call.do(t, "GET", prefix+"/ip/"+address, nil).answeredBy(t, f)
	if a := s.add(with(body, "ipAddr", "10.99.0.1")).answeredBy(t, l); a.Code == 0 {
		t.Errorf("not refused: %s", a.Raw)
	}
	s.call.do(t, "POST", prefix, "no JSON").answeredBy(t, f)
	s.del(body).answeredBy(t, l).done(t)
	vm := s.add(object{"host": s.Host, "owner": s.owner("vm")}).answeredBy(t, l).done(t)["ipAddr"].(string)
	s.call.do(t, "DELETE", prefix+"/ip/"+vm, object{"owner": s.owner("vm")}).answeredBy(t, l).done(t)
	s.add(object{"host": s.Host, "owner": s.owner("vm2")}).done(t)
	released := s.call.do(t, "DELETE", prefix+"/host/"+s.Host, nil).answeredBy(t, l)
	if got := len(released.Data); got <= len("[]") {
		t.Errorf("the host held nothing: %s", released.Raw)
	}
	s.call.waitMetric(t, `bcsnet_forwarded_total{result="answered"}`, "7")
	controlplane.Eventually(t, func() error {
		i := s.call.info(t)
		if i.Replica.Leading || !i.Replica.Ready || len(i.Replicas) != 2 || i.Leader.URL != leader.URL ||
			i.Leader.Since == "" {
			return fmt.Errorf("%+v", i)
		}
		return nil
	})
	if a := s.call.do(t, "GET", "/version", nil); !strings.Contains(string(a.Raw), `"kubernetes":"v1.`) {
		t.Errorf("/version: %s", a.Raw)
	}
}

// Each of two replicas takes the other for the leader: a request goes one hop.
func TestForwardOneHop(t *testing.T) {
	t.Parallel()
	var all []*instance
	var in []*group
	for range 2 {
		g := newGroup(t)
		in = append(in, g)
		all = append(all, g.start(account(t, shared.cluster))) // leads, and loses the Lease below
		leads(t, all[len(all)-1].caller())
	}
	s := newSite(t)
	s.pool(5, nil)
	for i, g := range in {
		g.takeLease(idOf(t, all[1-i].caller()), all[1-i].URL)
		g.introduce(in[1-i])
	}
	for i, c := range all {
		controlplane.Eventually(t, func() error {
			if info := c.caller().info(t); info.Replica.Leading || !info.Forwarding.Active || info.Leader.URL != all[1-i].URL {
				return fmt.Errorf("%+v", info)
			}
			return nil
		})
	}
	s.knownTo(all[0].caller(), all[1].caller())
	for i, c := range all {
		s.call = c.caller()
		s.add(object{"host": s.Host, "owner": s.owner(fmt.Sprint(i))}).answeredBy(t, idOf(t, all[1-i].caller())).done(t)
	}
}

// fakeLeader is what a Lease leads followers to.
type fakeLeader struct {
	server *httptest.Server
	id     string

	mu     sync.Mutex
	handle http.HandlerFunc
	alive  bool // /healthz and /readyz answer
	got    []http.Header
	probes int
}

// newFake starts a fake leader and a follower of it.
func newFake(t *testing.T, handle http.HandlerFunc) (*fakeLeader, *instance) {
	t.Helper()
	l := &fakeLeader{handle: handle, alive: true}
	l.server = httptest.NewServer(l)
	t.Cleanup(l.server.Close)
	t.Cleanup(l.server.CloseClientConnections)
	g := newGroup(t)
	l.id = g.held(hostname(t), l.server.URL).ID()
	i := g.start(account(t, shared.cluster))
	forwards(t, i.caller(), l.id)
	return l, i
}

func (l *fakeLeader) set(handle http.HandlerFunc, alive bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handle, l.alive = handle, alive
}

func (l *fakeLeader) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/info" { // a replica that starts asks what this one has seen of the store
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body) // a server notices that its client has gone only when it has read the body
	r.Body = io.NopCloser(bytes.NewReader(body))
	page := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
	l.mu.Lock()
	handle, alive := l.handle, l.alive
	if page {
		l.probes++
	} else {
		l.got = append(l.got, r.Header)
	}
	l.mu.Unlock()
	switch {
	case page && !alive:
		hang(w, r)
	case page:
		w.Header().Set("Bcsnet-Answered-By", l.id)
	default:
		handle(w, r)
	}
}

func (l *fakeLeader) asked() (requests, probes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.got), l.probes
}

// hang does not answer, as a stopped process.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// A follower serves by itself what the leader has no answer for.
func TestForwardLeaderFails(t *testing.T) {
	t.Parallel()
	code := func(l **fakeLeader, status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Bcsnet-Answered-By", (*l).id)
			w.WriteHeader(status)
		}
	}
	var l *fakeLeader
	l, i := newFake(t, nil)
	s := newSite(t)
	s.pool(20, nil)
	s.call = i.caller()
	s.knownTo(s.call)
	self := idOf(t, s.call)
	for _, c := range []struct {
		name, result string
		handle       http.HandlerFunc
		alive        bool
	}{
		{"503", "refused", code(&l, http.StatusServiceUnavailable), true},
		{"500", "refused", code(&l, http.StatusInternalServerError), true},
		{"cut", "unreachable", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		{"a stranger", "unreachable", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }, true},
		{"silent", "silent", hang, false},
	} {
		l.set(c.handle, c.alive)
		series := fmt.Sprintf(`bcsnet_forwarded_total{result=%q}`, c.result)
		before := s.call.metric(t, series)
		s.add(object{"host": s.Host, "owner": s.owner(strings.ReplaceAll(c.name, " ", "-"))}).answeredBy(t, self).done(t)
		if after := s.call.metric(t, series); after == before {
			t.Errorf("%s: %s is %s", c.name, series, after)
		}
		// One that was silent is left alone until it shows that it is back.
		requests, _ := l.asked()
		if c.result == "refused" {
			continue
		}
		s.add(object{"host": s.Host, "owner": s.owner("after-" + strings.ReplaceAll(c.name, " ", "-"))}).answeredBy(t, self).
			done(t)
		if again, _ := l.asked(); c.name == "silent" && again != requests {
			t.Errorf("%s: the leader was asked %d more times", c.name, again-requests)
		}
		l.set(code(&l, http.StatusOK), true)
		controlplane.Eventually(t, func() error {
			a, err := s.call.send(t.Context(), "DELETE", prefix, object{"host": s.Host, "owner": "nobody"})
			if got := a.Header.Get("Bcsnet-Answered-By"); got != l.id {
				return fmt.Errorf("%s answered: %w", got, err)
			}
			return nil // the fake's answer has no body, which is no answer of the document
		})
	}
}

// A busy leader is waited for as long as it lives; it is told how long the client waits, who asks and since when.
func TestForwardLeaderIsBusy(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	answer := sync.OnceFunc(func() { close(done) })
	l, i := newFake(t, nil)
	defer answer() // a test that fails must not leave the fake's server with a request that never ends
	l.set(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Bcsnet-Answered-By", l.id)
		w.Header().Set("Content-Type", "application/json")
		<-done
		_, _ = fmt.Fprintf(w, `{"code":2,"message":"no","result":false,"data":null,"request_id":%q,"reason":"PoolExhausted"}`,
			r.Header.Get("X-Request-Id"))
	}, true)
	sent := time.Now()
	answered := make(chan result, 1)
	go func() {
		a, err := i.caller().send(t.Context(), "POST", prefix, object{"host": "10.0.0.11", "owner": "x"}, "Bcsnet-Timeout-Ms",
			"9000")
		answered <- result{a, err}
	}()
	controlplane.Eventually(t, func() error {
		if _, probes := l.asked(); probes < 3 {
			return fmt.Errorf("%d signs of life asked for", probes)
		}
		return nil
	})
	answer()
	a := (<-answered).must(t)
	a.answeredBy(t, l.id).refusedWith(t, "PoolExhausted")
	l.mu.Lock()
	h := l.got[0]
	l.mu.Unlock()
	arrived, err := time.Parse(time.RFC3339Nano, h.Get("Bcsnet-Arrived"))
	if h.Get("Bcsnet-Forwarded") != idOf(t, i.caller()) || h.Get("Bcsnet-Caller") != "127.0.0.1" ||
		h.Get("X-Request-Id") != a.RequestID ||
		err != nil || arrived.Sub(sent).Abs() > time.Minute {
		t.Errorf("the leader got %v", h)
	}
	var ms int
	if _, err := fmt.Sscan(h.Get("Bcsnet-Timeout-Ms"), &ms); err != nil || ms < 1 || ms > 6000 {
		t.Errorf("the leader was given %q ms of 9000", h.Get("Bcsnet-Timeout-Ms"))
	}
}

// A client that does not say how long it waits may give up after ten seconds: the leader has eight.
func TestForwardForAClientThatDoesNotTell(t *testing.T) {
	t.Parallel()
	l, i := newFake(t, nil)
	l.set(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Bcsnet-Answered-By", l.id)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"code":2,"message":"no","result":false,"data":null,"request_id":%q,"reason":"PoolExhausted"}`,
			r.Header.Get("X-Request-Id"))
	}, true)
	i.caller().do(t, "POST", prefix, object{"host": "10.0.0.11", "owner": "x"}).answeredBy(t, l.id)
	l.mu.Lock()
	told := l.got[0].Get("Bcsnet-Timeout-Ms")
	l.mu.Unlock()
	if told != "8000" {
		t.Errorf("the leader was given %q ms", told)
	}
}

// A DEL that reaches the leader before an ADD that a follower has forwarded is the newer one.
func TestForwardedAddIsOvertaken(t *testing.T) {
	t.Parallel()
	arrived, open := make(chan struct{}), make(chan struct{})
	var target atomic.Pointer[url.URL]
	way := &httputil.ReverseProxy{
		Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target.Load()) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == prefix {
			close(arrived)
			<-open
		}
		way.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	g := newGroup(t)
	cfg := account(t, shared.cluster)
	leader := startFor(t, cfg, func(o *controller.Options) { g.options(o); o.AdvertiseAddress = server.URL })
	to, err := url.Parse(leader.URL)
	if err != nil {
		t.Fatal(err)
	}
	target.Store(to)
	leads(t, leader.caller())
	follower := g.start(cfg)
	forwards(t, follower.caller(), idOf(t, leader.caller()))
	s := newSite(t)
	s.pool(5, nil)
	s.knownTo(leader.caller(), follower.caller())
	body := object{"host": s.Host, "owner": s.owner("vm"), "containerID": newID()}
	added := inBackground(t.Context(), follower.caller(), "POST", prefix, body)
	<-arrived
	leader.caller().do(t, "DELETE", prefix, body).done(t)
	close(open)
	(<-added).must(t).answeredBy(t, idOf(t, leader.caller())).refusedWith(t, "ContainerDeleted")
	// One that begins now is served.
	leader.caller().do(t, "POST", prefix, body).done(t)
}

// Nothing is forwarded by plain HTTP to another machine: a leader there is of a release before this one.
func TestForwardPlainHTTP(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.held("another-machine", "http://192.0.2.1:8090")
	i := g.start(account(t, shared.cluster))
	controlplane.Eventually(t, func() error {
		info := i.caller().info(t)
		if want := "the leader's URL http://192.0.2.1:8090 is plain HTTP to another machine, which an earlier release uses"; info.Forwarding.Reason != want {
			return fmt.Errorf("%+v", info)
		}
		return nil
	})
	s := newSite(t)
	s.pool(5, nil)
	s.call = i.caller()
	s.knownTo(s.call)
	s.add(object{"host": s.Host, "owner": s.owner("vm")}).answeredBy(t, idOf(t, s.call)).done(t)
	if i.Log.Line("level=WARN", "requests are not forwarded to the leader", "plain HTTP") == "" {
		t.Errorf("the log does not say why:\n%s", i.Log)
	}
}
