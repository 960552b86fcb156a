package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

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
		plain bool
		why   string
	}{
		"TLS":                     {leader("there", "https://10.0.0.2:8090"), false, ""},
		"plain and allowed":       {leader("there", "http://10.0.0.2:8090"), true, ""},
		"plain":                   {leader("there", "http://10.0.0.2:8090"), false, "the leader's URL http://10.0.0.2:8090 is plain HTTP to another machine, and --forward-plain-http is not set"},
		"plain on this machine":   {leader("here", "http://127.0.0.1:8091"), false, ""},
		"another's loopback":      {leader("there", "http://127.0.0.1:8091"), true, "the leader's URL http://127.0.0.1:8091 leads back to this machine"},
		"another's localhost":     {leader("there", "https://localhost:8091"), true, "the leader's URL https://localhost:8091 leads back to this machine"},
		"the same URL":            {leader("there", self.URL), true, "the leader's URL is that of this replica"},
		"no URL":                  {leader("there", ""), true, "the leader names no URL"},
		"no leader":               {&fakePeers{self: self}, true, "no leader is known"},
		"leading":                 {leads, true, "this replica leads"},
		"this replica, not begun": {&fakePeers{self: self, leader: self}, true, "this replica holds the Lease"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := NewForwarder(c.peers, c.plain, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
			if _, why := f.target(); why != c.why {
				t.Errorf("%q, want %q", why, c.why)
			}
		})
	}
}

func TestReadTimeout(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]string{
		"": "15s", "1": "1ms", "2500": "2.5s", "99999999": "15s", "0": "error", "-1": "error", "x": "error", "1.5": "error",
		"99999999999999999999": "error",
	} {
		r := httptest.NewRequest(http.MethodPost, Prefix, http.NoBody)
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
	b := newBench(t)
	self := b.Peers.Self()
	for path, want := range map[string]string{
		"/version": `{"version":"v1","go":"go1"}`,
		"/info": fmt.Sprintf(`{"replica":{"id":%q,"name":"here","leading":false,"ready":true},"leader":null,`+
			`"replicas":[{"id":%q,"name":"here"}],"forwarding":{"active":false,"reason":"no leader is known"}}`, self.ID(), self.ID()),
	} {
		w := httptest.NewRecorder()
		b.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		if got := w.Body.String(); w.Code != http.StatusOK || got != want+"\n" || w.Header().Get(headerAnsweredBy) != self.ID() {
			t.Errorf("%s: %d %s, answered by %s", path, w.Code, got, w.Header().Get(headerAnsweredBy))
		}
	}
}
