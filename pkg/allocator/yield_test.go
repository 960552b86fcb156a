package allocator

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Two replicas serve two pods of one machine at once, from pictures in which it has no address: the pod that was
// written first has one, the other is refused, and what it was given goes back.
func TestTwoPodsOfOneKeyAtTwoReplicas(t *testing.T) {
	for what, order := range map[string]func(one, two *replica){
		"the first sees it first":  func(one, two *replica) { one.watch.Open(); two.watch.Open() },
		"the second sees it first": func(one, two *replica) { two.watch.Open(); one.watch.Open() },
	} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9-12")
			one, two := newReplica(t, s.pool), newReplica(t, s.pool)
			name := "launcher-of-" + s.pool.Name
			p, q := newPod(t, name+"-a", s.host, one, two), newPod(t, name+"-b", s.host, one, two)
			for _, pod := range []string{p.Name, q.Name} {
				terms.set(pod, s.keyed("machine"))
			}
			a, _, answers, leave := apart(t, s, one, two, s.of(p, p.Name+"-c"), s.of(q, q.Name+"-c"))
			defer leave()
			order(one, two)
			if got := <-answers[0]; got.err != nil || !slices.Equal(got.addrs, []netip.Addr{a}) {
				t.Errorf("the first pod gets %v, %v; want %s", got.addrs, got.err, a)
			}
			got := <-answers[1]
			refused(t, got.err, ipam.ReasonClaimConflict, p.Name, a.String())
			settled(t, s, s.of(p, p.Name+"-c"), one, two)
		})
	}
}
