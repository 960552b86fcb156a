package http_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// silentWatches takes watches of the addresses and tells them nothing, as a connection that something on the way holds.
func silentWatches(_ *apiProxy, w http.ResponseWriter, r *http.Request) bool {
	if !intercept.Watches(r) || !strings.HasSuffix(r.URL.Path, "/bcsnetips") {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // the client has gone, if that fails
	<-r.Context().Done()
	return true
}

// hangs takes every request and answers none.
func hangs(_ *apiProxy, _ http.ResponseWriter, r *http.Request) bool {
	_, _ = io.Copy(io.Discard, r.Body) // a server notices that its client has gone only when it has read the body
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// silence has a rule apply to what is under way, too.
func (p *apiProxy) silence(r rule) {
	p.set(r)
	p.api.Cut()
}

// readyz waits until /readyz has a status and a text.
func (c caller) readyz(t *testing.T, status int, text string) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		got, body, err := getText(t.Context(), c.url+"/readyz")
		if err != nil || got != status || !strings.Contains(body, text) {
			return fmt.Errorf("%d %s, %w", got, body, err)
		}
		return nil
	})
}

// A replica whose watch is open and silent answers all the same: it ends that watch and begins another, and where all
// are silent it lists.
func TestSilentWatchAtAReplica(t *testing.T) {
	t.Parallel()
	s, p, i := behindProxy(t)
	p.silence(silentWatches)
	for n := range 3 {
		began := time.Now()
		s.add(object{"host": s.Host, "owner": s.owner(fmt.Sprint(n))}).done(t)
		t.Logf("an ADD took %s", time.Since(began).Round(time.Millisecond))
	}
	i.caller().readyz(t, http.StatusServiceUnavailable, "did not deliver what was written")
	p.silence(nil)
	for n := range 3 {
		s.del(object{"host": s.Host, "owner": s.owner(fmt.Sprint(n))}).done(t)
	}
	i.caller().readyz(t, http.StatusOK, "ok")
}

// A leader whose watches are silent says that it is not ready and lets another lead; meanwhile every request is
// answered.
func TestSilentLeaderHandsOver(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.lease = time.Hour // nobody waits for its end
	p := newProxy(t, shared.cluster)
	leader := g.start(p.config())
	leads(t, leader.caller())
	follower := g.start(account(t, shared.cluster))
	s := newSite(t)
	s.pool(60, nil)
	s.knownTo(leader.caller(), follower.caller())
	forwards(t, follower.caller(), idOf(t, leader.caller()))
	controlplane.Eventually(t, func() error {
		if i := leader.caller().info(t); len(i.Replicas) != 2 {
			return fmt.Errorf("%+v", i)
		}
		return nil
	})
	p.silence(silentWatches)
	s.call = follower.caller()
	for n := 0; ; n++ {
		began := time.Now()
		s.add(object{"host": s.Host, "owner": s.owner(fmt.Sprint(n))}).done(t)
		t.Logf("an ADD took %s", time.Since(began).Round(time.Millisecond))
		if follower.caller().info(t).Replica.Leading {
			break
		}
		if n == 50 {
			t.Fatal("the leader goes on leading")
		}
	}
	leader.caller().readyz(t, http.StatusServiceUnavailable, "did not deliver what was written")
}

// While the API server hangs, /readyz says so, and when it is back again that it is.
func TestReadyzWhileTheAPIServerHangs(t *testing.T) {
	t.Parallel()
	s, p, i := behindProxy(t)
	p.silence(hangs)
	i.caller().readyz(t, http.StatusServiceUnavailable, "the API server does not answer")
	p.silence(nil)
	i.caller().readyz(t, http.StatusOK, "ok")
	s.add(object{"host": s.Host, "owner": s.owner("vm")}).done(t)
}

// While writes alone hang, /readyz says so, too.
func TestReadyzWhileWritesHang(t *testing.T) {
	t.Parallel()
	s, p, i := behindProxy(t)
	g := newGate(s)
	p.set(g.leaseWrites)
	body := object{"host": s.Host, "owner": s.owner("vm"), "containerID": newID()}
	pending := inBackground(t.Context(), s.call, "POST", prefix, body)
	g.waitArrived(t)
	i.caller().readyz(t, http.StatusServiceUnavailable, "what became of a write")
	close(g.open)
	p.set(nil)
	_ = (<-pending).must(t) // which of both was faster does not matter here
	controlplane.Eventually(t, func() error {
		if a := s.add(body); a.Code != 0 {
			return fmt.Errorf("%s", a.Raw)
		}
		return nil
	})
	i.caller().readyz(t, http.StatusOK, "ok")
}
