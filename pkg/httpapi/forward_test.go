package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/limiter"
	"github.com/bcsnet/bcsnet/pkg/replica"
)

type fakePeers struct {
	self, leader replica.Identity
	leading      bool
	secrets      map[string][]byte // by ID
}

func (p *fakePeers) Self() replica.Identity       { return p.self }
func (p *fakePeers) Leading() bool                { return p.leading }
func (p *fakePeers) Leader() (Leader, bool)       { return Leader{Identity: p.leader}, p.leader.Name != "" }
func (p *fakePeers) Secret(id string) []byte      { return p.secrets[id] }
func (p *fakePeers) Replicas() []replica.Identity { return []replica.Identity{p.self} }

// To whom a replica forwards, and why not.
func TestTarget(t *testing.T) {
	t.Parallel()
	self := replica.Identity{Name: "here", Life: "a", URL: "http://10.0.0.1:8090"}
	leader := func(name, url string) *fakePeers {
		return &fakePeers{self: self, leader: replica.Identity{Name: name, Life: "b", URL: url}}
	}
	leads := leader("there", "https://10.0.0.2:8090")
	leads.leading = true
	for name, c := range map[string]struct {
		peers *fakePeers
		why   string
	}{
		"TLS": {leader("there", "https://10.0.0.2:8090"), ""},
		"plain": {leader("there", "http://10.0.0.2:8090"),
			"the leader's URL http://10.0.0.2:8090 is plain HTTP to another machine, which an earlier release uses"},
		"plain on this machine": {leader("here", "http://127.0.0.1:8091"), ""},
		"another's loopback": {leader("there", "http://127.0.0.1:8091"),
			"the leader's URL http://127.0.0.1:8091 leads back to this machine"},
		"another's localhost": {leader("there", "https://localhost:8091"),
			"the leader's URL https://localhost:8091 leads back to this machine"},
		"the same URL":            {leader("there", self.URL), "the leader's URL is this replica's own"},
		"no URL":                  {leader("there", ""), "the leader names no URL"},
		"no leader":               {&fakePeers{self: self}, "no leader is known"},
		"leading":                 {leads, "this replica leads"},
		"this replica, not begun": {&fakePeers{self: self, leader: self}, "this replica holds the Lease"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := NewForwarder(c.peers, nil, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
			if _, why := f.target(); why != c.why {
				t.Errorf("%q, want %q", why, c.why)
			}
		})
	}
}

func TestReadTimeout(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]string{
		"": "15s", "1": "1ms", "2500": "2.5s", "99999999": "15s", "0": "error", "-1": "error", "x": "error",
		"1.5":                  "error",
		"99999999999999999999": "error",
	} {
		r := localRequest(http.MethodPost, wire.Prefix, http.NoBody)
		r.Header.Set(headerTimeout, v)
		d, err := readTimeout(r)
		got := d.String()
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", v, got, want)
		}
	}
}

// GET /version and /info are plain JSON and name the replica that answers.
func TestReplicaPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	self := f.Peers.Self()
	for path, want := range map[string]string{
		"/version": `{"version":"v1","go":"go1"}`,
		"/info": fmt.Sprintf(`{"replica":{"id":%q,"name":"here","leading":false,"ready":true},"leader":null,`+
			`"replicas":[{"id":%q,"name":"here"}],"forwarding":{"active":false,"reason":"no leader is known"}}`, self.ID(), self.ID()),
	} {
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, localRequest(http.MethodGet, path, http.NoBody))
		if got := w.Body.String(); w.Code != http.StatusOK || got != want+"\n" || w.Header().
			Get(headerAnsweredBy) != self.ID() {
			t.Errorf("%s: %d %s, answered by %s", path, w.Code, got, w.Header().Get(headerAnsweredBy))
		}
	}
}

// storm asks a follower for many things at once, and counts what it hears and the connections that the leader gets.
type storm struct {
	connections, answered, refused, alone atomic.Int64
}

// newStorm starts a leader, and a forwarder to it.
func newStorm(t *testing.T, handle http.HandlerFunc) (*storm, *Forwarder) {
	t.Helper()
	s := &storm{}
	leader := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(headerAnsweredBy, replica.Identity{Name: "here", Life: "b"}.ID())
		if r.URL.Path != "/readyz" {
			handle(w, r)
		}
	}))
	leader.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	leader.Start()
	peers := &fakePeers{
		self: replica.Identity{Name: "here", Life: "a"}, leader: replica.Identity{Name: "here", Life: "b",
			URL: leader.URL},
	}
	f := NewForwarder(peers, nil, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		f.transport.CloseIdleConnections()
		f.signs.CloseIdleConnections()
		leader.CloseClientConnections()
		leader.Close()
	})
	return s, f
}

func (s *storm) ask(t *testing.T, f *Forwarder, n int) (all *sync.WaitGroup) {
	t.Helper()
	all = &sync.WaitGroup{}
	for range n {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			answer, err := f.forward(localRequest(http.MethodPost, wire.Prefix, http.NoBody).WithContext(ctx), nil)
			switch {
			case err != nil:
				s.refused.Add(1)
				if asRefusal(err).Reason != ipam.ReasonOverloaded {
					t.Error(err)
				}
			case answer == nil:
				s.alone.Add(1)
			default:
				s.answered.Add(1)
			}
		})
	}
	return all
}

// However many requests a follower has for its leader, they take no more connections than the bound, and the next ones
// take the same.
func TestForwardedRequestsShareConnections(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	s, f := newStorm(t, func(http.ResponseWriter, *http.Request) { <-open })
	const n = 2 * maxForwarded
	all := s.ask(t, f, n)
	for { // all have come to the bound
		taken, waiting := f.limiters[limiter.Take].Busy()
		if taken+waiting+int(s.refused.Load()+s.alone.Load()) == n {
			break
		}
		runtime.Gosched()
	}
	close(open)
	all.Wait()
	s.ask(t, f, maxForwarded).Wait()
	const signs = 1
	// On a machine that is busy the leader may seem stuck: the follower would answer, and closes the connections of
	// what it gave up.
	if c := s.connections.Load(); c > maxForwarded+signs && s.alone.Load() == 0 {
		t.Errorf("%d connections, want at most %d", c, maxForwarded+signs)
	}
	if all := s.answered.Load() + s.refused.Load() + s.alone.Load(); all != n+maxForwarded || s.answered.Load() == 0 {
		t.Errorf("%d answered, %d refused, %d that the follower would have to answer", s.answered.Load(),
			s.refused.Load(), s.alone.Load())
	}
}

// A DEL comes through to the leader although as many ADDs as may are waiting there for what it frees.
func TestReleasePassesWhatWaitsForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		peers := &fakePeers{self: replica.Identity{Name: "here", Life: "a"}}
		f := NewForwarder(peers, nil, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		enter := func(method string) error {
			_, err := f.enter(localRequest(method, wire.Prefix, http.NoBody).WithContext(ctx))
			return err
		}
		var all sync.WaitGroup
		for range maxForwarded {
			all.Go(func() { _ = enter(http.MethodPost) })
		}
		synctest.Wait()
		if err := enter(http.MethodDelete); err != nil {
			t.Errorf("the DEL that they wait for: %v", err)
		}
		end()
		all.Wait()
	})
}

// What an overloaded leader refuses the follower passes on, and with it when to ask again; it does not do the work
// itself.
func TestRefusalOfAnOverloadedLeaderIsPassedOn(t *testing.T) {
	t.Parallel()
	refusal := ipam.Refuse(ipam.ReasonOverloaded, "too much")
	leader := newRefusals(slog.New(slog.DiscardHandler), NewMetrics(prometheus.NewRegistry()), nil)
	_, f := newStorm(t, func(w http.ResponseWriter, r *http.Request) {
		leader.refuse(w, r, "allocate", envelopeCodec{}.status(refusal), refusal, envelopeCodec{})
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answer, err := f.forward(localRequest(http.MethodPost, wire.Prefix, http.NoBody).WithContext(ctx), nil)
	if err != nil || answer == nil {
		t.Fatalf("%v, %v: the follower does it itself", answer, err)
	}
	w := httptest.NewRecorder()
	answer.passOn(w)
	if w.Code != http.StatusServiceUnavailable || !slices.Contains([]string{"1", "2"}, w.Header().Get("Retry-After")) ||
		w.Header().Get(headerReason) != "Overloaded" ||
		!strings.Contains(w.Body.String(), `"reason":"Overloaded"`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}
