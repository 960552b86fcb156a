package allocator

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// Rule 4: a write of unknown outcome at one replica, and the next call at another that has not seen it: the
// same address, and no second.
func TestUnknownOutcomeSettledByAnotherReplica(t *testing.T) {
	for what, test := range map[string]struct {
		write        intercept.Hook
		materialized bool
	}{
		"stored, update":     {intercept.LoseAnswer(errReset), true},
		"stored, create":     {intercept.LoseAnswer(errReset), false},
		"not stored, update": {intercept.Fail(errReset), true},
		"not stored, create": {intercept.Fail(errReset), false},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9-12")
			one, two := newReplica(t, s.pool), newReplica(t, s.pool)
			if test.materialized {
				s.materialize(t, one)
				controlplane.Until(t, "the other replica knows", func() bool { return len(two.index.Leases.ByPool(s.pool.Name)) == 4 })
			}
			request := s.vm("doubt")
			mend := one.tap.On(writes, test.write)
			two.watch.Shut()
			_, err := one.Allocate(t.Context(), request)
			refused(t, err, ipam.ReasonOutcomeUnknown)
			mend()
			done := two.adding(t.Context(), request)
			controlplane.Until(t, "it is stored", func() bool { return len(s.held(t)) == 1 })
			two.watch.Open()
			got := <-done
			if got.err != nil {
				t.Fatal(got.err)
			}
			if again := one.add(request); !slices.Equal(again, got.addrs) || len(s.held(t)) != 1 {
				t.Errorf("%v and %v; held: %v", got.addrs, again, s.held(t))
			}
		})
	}
}

// Rule 6: the DEL of a container that was replaced, at a replica that has not seen the new one, frees nothing.
func TestDelOfAReplacedContainerAtAStoppedReplica(t *testing.T) {
	s := newSite("9")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	p := newPod(t, "replaced-late", s.host, one, two)
	a := one.one(s.of(p, "replaced-late-1"))
	two.picture(s, map[netip.Addr]string{a: "replaced-late-1"})
	two.watch.Shut()
	defer two.watch.Open()
	if got := one.one(s.of(p, "replaced-late-2")); got != a {
		t.Fatalf("the new container has %s, want %s", got, a)
	}
	if got := two.del(del(s.of(p, "replaced-late-1"))); len(got) != 0 {
		t.Errorf("released %v", got)
	}
	if held := s.held(t); held[a] != "replaced-late-2" {
		t.Errorf("held: %v", held)
	}
}

// Rule 7: the removal of a free object meets an allocation by another replica. Whoever writes first wins, and
// the other does without: no lease is removed, and an address without object is taken all the same.
func TestObjectIsRemovedAtAnotherReplica(t *testing.T) {
	for what, allocatedFirst := range map[string]bool{"the allocation is first": true, "the removal is first": false} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9")
			one, two := newReplica(t, s.pool), newReplica(t, s.pool)
			s.materialize(t, one)
			controlplane.Until(t, "the other replica knows", func() bool { return len(two.index.Leases.ByPool(s.pool.Name)) == 1 })
			free := one.lease(s.addr(9))
			one.watch.Shut()
			defer one.watch.Open()
			if allocatedFirst {
				two.one(s.vm("first"))
				if err := one.leases.Delete(t.Context(), free); !errors.Is(err, store.ErrConflict) {
					t.Errorf("the removal: %v", err)
				}
			} else {
				two.watch.Shut()
				if err := one.leases.Delete(t.Context(), free); err != nil {
					t.Fatal(err)
				}
				done := two.adding(t.Context(), s.vm("second"))
				controlplane.Until(t, "it is stored", func() bool { return len(s.held(t)) == 1 })
				two.watch.Open()
				if got := <-done; got.err != nil {
					t.Error(got.err)
				}
			}
			if held := s.held(t); len(held) != 1 {
				t.Errorf("held: %v", held)
			}
		})
	}
}

// Rule 10: a set of which one replica stored a part is completed by another, also by one that has not seen
// that part; every replica answers the same set.
func TestPartialSetIsCompletedByAnotherReplica(t *testing.T) {
	for what, seen := range map[string]bool{"that has seen the part": true, "that has not": false} {
		t.Run(what, func(t *testing.T) {
			four, six := dual([]string{"9-12"}, "9", "a")
			one, two := newReplica(t, four.pool, six.pool), newReplica(t, four.pool, six.pool)
			request := four.vm("set")
			one.tap.Forget()
			mend := one.tap.On(func(r *http.Request) bool { return writes(r) && one.tap.Count(writes) == 2 },
				intercept.Fail(errRefused))
			if !seen {
				two.watch.Shut()
			}
			_, err := one.Allocate(t.Context(), request)
			refused(t, err, ipam.ReasonUnavailable)
			mend()
			part := four.held(t)
			if len(part) != 1 || len(six.held(t)) != 0 {
				t.Fatalf("held: %v, %v", part, six.held(t))
			}
			if seen {
				two.picture(four, part)
			}
			done := two.adding(t.Context(), request)
			controlplane.Until(t, "the set is stored", func() bool { return len(six.held(t)) == 1 })
			two.watch.Open()
			got := <-done
			if got.err != nil || len(got.addrs) != 2 {
				t.Fatal(got.addrs, got.err)
			}
			if again := one.add(request); !slices.Equal(again, got.addrs) {
				t.Errorf("%v, want %v", again, got.addrs)
			}
			if n := len(four.held(t)) + len(six.held(t)); n != 2 {
				t.Errorf("%d addresses are held, want 2", n)
			}
		})
	}
}

// Rule 8: how many addresses a claim may have is counted over what a replica knows. One that has not seen what another
// gave may give one more; that stays with its pod, and is counted from then on.
func TestClaimOverrunAtAReplicaThatLagsBehind(t *testing.T) {
	s := newSite("9-12")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	may := s.app()
	may.Room = 1
	request := func(name string) Request {
		terms.set(name, may)
		return s.of(newPod(t, name, s.host, one, two), name+"-c")
	}
	first, second, third := request("overrun-1"), request("overrun-2"), request("overrun-3")
	second.Addrs = []netip.Addr{s.addr(10)} // a conflict with the first would tell of it
	first.Addrs = []netip.Addr{s.addr(9)}
	two.watch.Shut()
	a := one.one(first)
	done := two.adding(t.Context(), second)
	controlplane.Until(t, "both are stored", func() bool { return len(s.held(t)) == 2 })
	two.watch.Open()
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	held := s.held(t)
	for _, r := range []*replica{one, two} {
		r.picture(s, held)
		_, err := r.Allocate(t.Context(), third)
		refused(t, err, ipam.ReasonClaimFull, "2 of 1")
		if r.one(first) != a || !slices.Equal(r.add(second), got.addrs) {
			t.Error("a pod does not keep what it has")
		}
	}
}

// Rule 6: two DELs of one claim at two replicas, neither of which knows of the other's: both addresses stay with the
// claim. A replica that decided which one is too many would free two.
func TestTwoDelsOfOneClaim(t *testing.T) {
	s := newSite("9-12")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	may := s.app()
	may.Room = 1
	var requests []Request
	for _, name := range []string{"two-dels-1", "two-dels-2"} {
		terms.set(name, s.app())
		requests = append(requests, s.of(newPod(t, name, s.host, one, two), name+"-c"))
		one.one(requests[len(requests)-1])
		terms.set(name, may) // which is one too many from now on
	}
	two.picture(s, s.held(t))
	one.watch.Shut()
	two.watch.Shut()
	defer one.watch.Open()
	defer two.watch.Open()
	for n, r := range []*replica{one, two} {
		if got := r.del(del(requests[n])); len(got) != 1 {
			t.Errorf("replica %d released %v", n, got)
		}
	}
	kept := 0
	s.stored(t, func(l lease.Lease) {
		if l.State == lease.Reserved && l.Claim == may.Claim {
			kept++
		}
	})
	if kept != 2 {
		t.Errorf("%d addresses are kept for the claim, want 2", kept)
	}
}
