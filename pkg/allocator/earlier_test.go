package allocator

import (
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// A pod that is deleted by force runs until its grace period is over: the next pod of its key waits for that long,
// unless the plugin has released the address before.
func TestSuccessorWaitsForContainers(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second string // the pods' names
		del           bool
	}{
		"of the same name": {first: "ends-0", second: "ends-0"}, "of another name": {first: "ends-a", second: "ends-b"},
		"released": {first: "ends-1", second: "ends-1", del: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite("9-20")
			r := newReplica(t, s.pool)
			r.succession.rule = gone.Rule{Termination: time.Hour}
			first := newPod(t, tc.first, s.host, r)
			terms.set(tc.first, s.keyed("key-of-"+tc.first))
			terms.set(tc.second, s.keyed("key-of-"+tc.first))
			old := s.of(first, name+"-c1")
			old.PodUID = string(first.UID)
			a := r.one(old)
			removePod(t, first)
			second := newPod(t, tc.second, s.host, r)
			next := s.of(second, name+"-c2")
			next.PodUID = string(second.UID)
			for range 2 {
				_, err := r.Allocate(t.Context(), next)
				refused(t, err, ipam.ReasonClaimConflict, a.String(), "is gone, and its containers may run for another")
			}
			if tc.del {
				r.del(del(old))
			} else {
				r.succession.rule = gone.Rule{Termination: time.Millisecond} // it is over
			}
			controlplane.Until(t, "the next pod gets the address", func() bool {
				got, err := r.Allocate(t.Context(), next)
				return err == nil && got[0].Addr == a
			})
		})
	}
}

// A lease says for how long its pod's containers have to end, if that is longer than usual.
func TestLeaseTellsTermination(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	for name, tc := range map[string]struct {
		asks *int64
		want time.Duration
	}{"term-default": {}, "term-short": {asks: new(int64(1))}, "term-long": {new(int64(3600)), time.Hour}} {
		o := podObject(name, s.host)
		o.Spec.TerminationGracePeriodSeconds = tc.asks
		if err := cluster.AdminFor(t).Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		r.sees(o)
		if l := r.lease(r.one(s.of(o, name))); l.Termination != tc.want {
			t.Errorf("%s: %s, want %s", name, l.Termination, tc.want)
		}
	}
}
