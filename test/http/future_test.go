package http_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"
	objects "github.com/bcsnet/bcsnet/test/site"
)

// A DEL whose start is in the future, by a clock that is minutes or years ahead, does what a DEL does at each replica:
// it frees what its container has. It bars the ADDs of that container alone, and not longer than a clock can explain.
func TestDelFromTheFuture(t *testing.T) {
	t.Parallel()
	leader, follower := newGroup(t).led()
	l := idOf(t, leader.caller())
	s := newSite(t)
	s.pool(20, nil)
	s.knownTo(leader.caller(), follower.caller())
	ahead := map[string]string{
		"an-hour": stamp(3600), "a-day": stamp(24 * 3600), "years": "2199-01-02T15:04:05Z",
	}
	asked := map[string]caller{"leader": leader.caller(), "follower": follower.caller()}
	for name, call := range asked {
		s.call = call
		for far, future := range ahead {
			pod := name + "-" + far
			body, address := s.given(pod)
			_, neighbour := s.given(pod + "-beside")
			if got := ips(s.del(with(body, "startedAt", future)).answeredBy(t, l).done(t)); !slices.Equal(got, []string{address}) {
				t.Errorf("%s, %s ahead: freed %v, want %s", name, far, got, address)
			}
			// The same DEL again, and one for a container that never was, change nothing.
			s.del(with(body, "startedAt", future)).done(t)
			s.del(with(s.request("nobody-"+pod, pod), "startedAt", future)).done(t)
			for other, c := range asked { // another container of the pod is not concerned, whoever is asked
				next := with(s.request(newID(), pod), "startedAt", stamp(0))
				if a := c.do(t, "POST", prefix, next).answeredBy(t, l); a.Code != 0 {
					t.Errorf("%s, %s ahead: the next container at the %s: %s", name, far, other, a.Raw)
				}
			}
			if got := string(stored(t, neighbour).Status.Status); got != "Active" {
				t.Errorf("%s, %s ahead: a pod beside it is %s", name, far, got)
			}
		}
	}
	// Its own container is served again once its ADD arrives later by more than clocks may be off.
	s.call = follower.caller()
	body, _ := s.given("again")
	s.del(with(body, "startedAt", ahead["an-hour"])).done(t)
	controlplane.Eventually(t, func() error {
		if a := s.add(with(body, "startedAt", time.Now().Format(time.RFC3339Nano))); a.Code != 0 {
			return fmt.Errorf("%s", a.Raw)
		}
		return nil
	})
}

// A list of ten thousand containers, more than any runtime has, is read in full at each replica: what it names stays,
// and what it does not name goes if its pod is gone.
func TestLongListOfANetwork(t *testing.T) {
	t.Parallel()
	leader, follower := newGroup(t).led()
	s := newSite(t)
	s.pool(6, nil)
	s.knownTo(leader.caller(), follower.caller())
	s.call = leader.caller()
	last, kept := s.attached("last", "pods")
	_, gone := s.attached("gone", "pods")
	(&objects.Site{T: t, Admin: shared.admin}).Aged(gone, kept)
	s.remove("last")
	s.remove("gone")
	list := make([]any, 0, 10_000)
	for len(list) < cap(list)-1 {
		list = append(list, newID())
	}
	list = append(list, last["containerID"])
	controlplane.Until(t, "what the list lacks is freed", func() bool {
		for _, c := range []caller{follower.caller(), leader.caller()} {
			s.gc(c, "pods", stamp(0), list...).answeredBy(t, idOf(t, leader.caller())).done(t)
		}
		return stored(t, gone).Status.Status == "Available"
	})
	if got := string(stored(t, kept).Status.Status); got != "Active" {
		t.Errorf("the last of the list is %s", got)
	}
}
