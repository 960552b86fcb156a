package allocator

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// ahead is what a claim of the site is to have before pods ask.
func (s site) ahead(size int) Preallocation {
	return Preallocation{
		Claim: s.app().Claim, Namespaces: []string{"default"}, Size: size,
		Void: func(context.Context) (bool, error) { return false, nil },
	}
}

// preallocate takes addresses, and checks what the claim has then.
func (r *replica) preallocate(a Preallocation, has, missing int) Stock {
	r.t.Helper()
	got, err := r.Preallocate(r.t.Context(), a)
	if err != nil {
		r.t.Fatal(err)
	}
	if got.Has != has || got.Missing != missing || (got.Why != nil) != (missing > 0) {
		r.t.Errorf("has %d and misses %d (%v), want %d and %d", got.Has, got.Missing, got.Why, has, missing)
	}
	return got
}

// kept are the addresses of a site that its claim keeps, as the API server has them.
func (s site) kept(t testing.TB) (kept []netip.Addr) {
	t.Helper()
	s.stored(t, func(l lease.Lease) {
		if l.IsRetained() && l.Claim == s.app().Claim {
			kept = append(kept, l.Addr)
		}
	})
	return kept
}

// A claim gets its addresses by one write each, and its pods get those; when it grows it takes more, and what it has
// it is not given again.
func TestPreallocate(t *testing.T) {
	s := newSite("9-40")
	r := newReplica(t, s.pool)
	r.tap.Forget()
	r.preallocate(s.ahead(20), 20, 0)
	r.cost("twenty addresses", 20, 0)
	r.preallocate(s.ahead(20), 20, 0)
	r.preallocate(s.ahead(3), 20, 0)
	r.cost("what it has", 0, 0)
	l := r.lease(s.kept(t)[0])
	if h := l.History.Entries(); !l.IsRetained() || !l.HeldFinalizer || l.PodPrimaryKey != "" || len(h) != 1 ||
		h[0].By != "claim "+s.app().Claim {
		t.Errorf("an address: %+v, %+v", l, h)
	}
	if size, ok := TakenFor(l); size != 20 || !ok {
		t.Errorf("taken for a size of %d, %v", size, ok)
	}
	terms.set("ahead-a", s.keyed("default/ahead-a"))
	if a := r.one(s.of(newPod(t, "ahead-a", s.host, r), "ahead-a")); r.lease(a).State != lease.Active ||
		len(s.kept(t)) != 19 {
		t.Errorf("the pod got %s, and %d are kept", a, len(s.kept(t)))
	}
	r.preallocate(s.ahead(20), 20, 0)
	if got := r.preallocate(s.ahead(40), 32, 8); got.Why.Reason != ipam.ReasonPoolExhausted {
		t.Errorf("missing because of %v", got.Why)
	}
	r.del(ReleaseRequest{ContainerID: "ahead-a"})
	if n := len(s.kept(t)); n != 32 {
		t.Errorf("%d are kept", n)
	}
	s.stored(t, func(l lease.Lease) {
		if _, ok := TakenFor(l); ok != (l.PodName == "") {
			t.Errorf("taken before any pod asked: %v, %+v", ok, l)
		}
	})
}

// A claim takes no more in one call than that call is to take, and as many as it is to have in several.
func TestPreallocateSome(t *testing.T) {
	s := newSite("9-40")
	r := newReplica(t, s.pool)
	for _, n := range []int{7, 7, 20} {
		some := s.ahead(30)
		some.AtMost = n
		r.preallocate(some, n, 0)
	}
	r.preallocate(s.ahead(30), 30, 0)
	s.stored(t, func(l lease.Lease) {
		if size, ok := TakenFor(l); size != 30 || !ok {
			t.Errorf("%s was taken for a size of %d, %v", l.Addr, size, ok)
		}
	})
}

// TestPreallocateLateWrites: writes of one whose time is over arrive when the next has all that the claim is to have.
// It gives them back when it sees that.
func TestPreallocateLateWrites(t *testing.T) {
	s := newSite("9-60")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	picks, _ := two.pickLacking(s.ahead(4))
	var others []Request // hold what would be taken first, as far as one of the two knows
	for i, p := range picks {
		two.index.Forget(p.Current.Addr)
		other := s.vm(fmt.Sprint(i))
		other.Addrs = []netip.Addr{p.Current.Addr}
		two.one(other)
		others = append(others, other)
	}
	controlplane.Until(t, "both have seen what others hold", func() bool {
		return !slices.ContainsFunc(picks, func(p ipam.Pick) bool { l, _ := one.index.Leases.Get(p.Current.Addr); return l.State != lease.Active })
	})
	one.watch.Shut()
	for _, other := range others {
		two.del(del(other))
	}
	gate := intercept.NewGate()
	defer one.tap.On(writes, gate.Hold)()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := one.Preallocate(ctx, s.ahead(4))
		done <- err
	}()
	<-gate.Arrived()
	two.preallocate(s.ahead(4), 4, 0)
	cancel()
	gate.Open()
	controlplane.Until(t, "the writes to arrive late", func() bool { return len(s.kept(t)) > 4 })
	one.watch.Open()
	err := <-done
	if refusal, ok := errors.AsType[*ipam.Refusal](err); err != nil && !ok {
		t.Errorf("it ended with %v, %v", err, refusal)
	}
	if got := s.kept(t); len(got) != 4 {
		t.Errorf("kept: %v", got)
	}
}

// Where there are too few it takes what there is, and the rest when that becomes free.
func TestPreallocateTooFew(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	other := s.vm("other")
	r.one(other)
	if got := r.preallocate(s.ahead(4), 3, 1); got.Why.Reason != ipam.ReasonPoolExhausted {
		t.Errorf("missing because of %v", got.Why)
	}
	r.del(del(other))
	r.preallocate(s.ahead(4), 4, 0)

	for name, change := range map[string]func(*Preallocation){
		"a pool that there is not": func(a *Preallocation) { a.Pools = []string{"none"} },
		"addresses of no pool":     func(a *Preallocation) { a.Addresses = newSite().set(t, 9, 12) },
	} {
		y := newSite("9-12").ahead(2)
		change(&y)
		if got := r.in(t).preallocate(y, 0, 2); got.Why == nil || got.Why.Hint == "" {
			t.Errorf("%s: %v", name, got.Why)
		}
	}
}

// A claim of certain addresses takes these and no others, of both families, and those alone of the pools that it may
// draw from.
func TestPreallocateByAddress(t *testing.T) {
	s, y, bound := newSite("9-12"), newSite("9-12"), newSite("9-12")
	bound.pool.Spec.Namespaces = []string{"elsewhere"}
	r := newReplica(t, s.pool, y.pool, bound.pool)
	taken := y.vm("taken")
	taken.Addrs = []netip.Addr{y.addr(10)}
	r.one(taken)
	a := y.ahead(65_536)
	a.Addresses = y.set(t, 10, 11)
	r.preallocate(a, 1, 1)
	if got := y.kept(t); !slices.Equal(got, []netip.Addr{y.addr(11)}) {
		t.Errorf("kept: %v", got)
	}
	if size, ok := TakenFor(r.lease(y.addr(11))); size != 2 || !ok {
		t.Errorf("taken for a size of %d, %v", size, ok)
	}
	a = bound.ahead(2)
	a.Pools = []string{bound.pool.Name}
	if got := r.preallocate(a, 0, 2); got.Why.Reason != ipam.ReasonNamespaceNotServed {
		t.Errorf("missing because of %v", got.Why)
	}
	a.Namespaces = append(a.Namespaces, "elsewhere")
	r.preallocate(a, 2, 0)
	if got := bound.kept(t); len(got) != 2 {
		t.Errorf("kept: %v", got)
	}
}

// A claim over a network of two families has as many of each, also where it stopped between the two.
func TestPreallocateBothFamilies(t *testing.T) {
	s := newSite("9-12")
	six := newSite().pool
	six.Spec.Net, six.Spec.Mask, six.Spec.Gateway = "2001:db8:77::", 64, "2001:db8:77::1"
	six.Spec.AvailableIPs, six.Spec.Hosts = []string{"2001:db8:77::9-2001:db8:77::10"}, s.pool.Spec.Hosts
	six.Name += "-six"
	s.pool.Spec.Network, six.Spec.Network = "ahead", "ahead"
	r := newReplica(t, s.pool, six)
	four := s.ahead(2)
	four.Pools = []string{s.pool.Name}
	r.preallocate(four, 2, 0)
	r.preallocate(s.ahead(3), 3, 0)
	if n := len(r.index.Leases.ByClaim(s.app().Claim)); n != 6 {
		t.Errorf("it has %d addresses, want 3 of each family", n)
	}
	r.preallocate(s.ahead(5), 4, 1)
}

// TestPreallocateAtTwoReplicas: two that believe to lead, with pictures of different age, leave the claim as many as
// it is to have and not one more.
func TestPreallocateAtTwoReplicas(t *testing.T) {
	s := newSite("9-200")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	for n := range 8 {
		size := 10 * (n + 1)
		one.watch.Shut() // neither sees what the other writes until both have written
		two.watch.Shut()
		before := len(s.kept(t))
		var both sync.WaitGroup
		for _, r := range []*replica{one, two} {
			both.Go(func() {
				if _, err := r.Preallocate(t.Context(), s.ahead(size)); err != nil {
					t.Error(err)
				}
			})
		}
		controlplane.Until(t, "they have begun", func() bool { return len(s.kept(t)) > before })
		one.watch.Open()
		two.watch.Open()
		both.Wait()
		if got := len(s.kept(t)); got != size {
			t.Fatalf("%d addresses are kept, want %d", got, size)
		}
	}
}

// One that was stopped half-way leaves what it took to its claim, and the next goes on from there.
func TestPreallocateHalfWay(t *testing.T) {
	s := newSite("9-100")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	gate := intercept.NewGate()
	defer one.tap.On(writes, gate.Hold)()
	for n := range 4 {
		size := 20 * (n + 1)
		gate.Shut()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := one.Preallocate(ctx, s.ahead(size))
			done <- err
		}()
		<-gate.Arrived() // some of its writes are under way
		if n%2 == 0 {
			gate.Open()
		}
		cancel()
		gate.Open()
		err := <-done
		if refusal, ok := errors.AsType[*ipam.Refusal](err); err != nil && !ok {
			t.Errorf("it ended with %v, %v", err, refusal)
		}
		two.preallocate(s.ahead(size), size, 0)
		one.preallocate(s.ahead(size), size, 0)
		if got := len(s.kept(t)); got != size {
			t.Fatalf("%d addresses are kept, want %d", got, size)
		}
	}
}

// A write of unknown outcome is settled by who asks next: the address is the claim's, or still nobody's.
func TestPreallocateUnknownOutcome(t *testing.T) {
	for what, hook := range map[string]intercept.Hook{
		"stored": intercept.LoseAnswer(errReset), "not stored": intercept.Fail(errReset),
	} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9-11")
			r := newReplica(t, s.pool)
			remove := r.tap.On(writes, hook)
			_, err := r.Preallocate(t.Context(), s.ahead(3))
			refused(t, err, ipam.ReasonOutcomeUnknown)
			remove()
			r.preallocate(s.ahead(3), 3, 0)
			if n := len(s.kept(t)); n != 3 {
				t.Errorf("%d are kept", n)
			}
		})
	}
}

// A claim that is gone when its addresses were taken gets none, and one of which that cannot be said keeps them.
func TestPreallocateForNobody(t *testing.T) {
	s := newSite("9-11")
	r := newReplica(t, s.pool)
	gone := s.ahead(3)
	gone.Void = func(context.Context) (bool, error) { return true, nil }
	r.preallocate(gone, 0, 0)
	if kept := s.kept(t); len(kept) != 0 {
		t.Errorf("kept: %v", kept)
	}
	gone.Void = func(context.Context) (bool, error) { return false, errors.New("no answer") }
	_, err := r.Preallocate(t.Context(), gone)
	refused(t, err, ipam.ReasonUnavailable, "no answer")
	if kept := s.kept(t); len(kept) != 3 {
		t.Errorf("kept: %v", kept)
	}
}

// TestSurplus: of what a claim keeps beyond its size those go that were written last; what pods have does not.
func TestSurplus(t *testing.T) {
	at := func(n byte, s lease.State, version uint64) lease.Lease {
		return lease.Lease{
			Addr: netip.AddrFrom4([4]byte{10, 0, 0, n}), State: s, Version: version,
			Retention: lease.Retention{Claim: "a/b", Fixed: true},
		}
	}
	six := at(0, lease.Reserved, 99)
	six.Addr = netip.MustParseAddr("2001:db8::1")
	all := []lease.Lease{
		at(1, lease.Reserved, 7), at(2, lease.Active, 9), at(3, lease.Reserved, 3), at(4, lease.Reserved, 5), six,
	}
	for size, want := range map[int]string{
		0: "[10.0.0.3 10.0.0.4 10.0.0.1 2001:db8::1]", 1: "[10.0.0.3 10.0.0.4 10.0.0.1]", 2: "[10.0.0.4 10.0.0.1]", 4: "[]",
	} {
		var got []netip.Addr
		for _, l := range surplusOf(all, size) {
			got = append(got, l.Addr)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("of %d: %v, want %s", size, got, want)
		}
	}
}
