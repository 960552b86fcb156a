package allocator

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// settled checks that exactly one address of a site is held, by a container, and that every replica
// answers it.
func settled(t *testing.T, s site, request Request, rs ...*replica) netip.Addr {
	t.Helper()
	held := s.held(t)
	if len(held) != 1 {
		t.Fatalf("held: %v, want one address", held)
	}
	for a, container := range held {
		if container != request.ContainerID {
			t.Fatalf("%s is held by %s, want %s", a, container, request.ContainerID)
		}
		for n, r := range rs {
			r.picture(s, held)
			if got := r.one(request); got != a {
				t.Fatalf("replica %d answers %s, want %s", n, got, a)
			}
		}
		return a
	}
	return netip.Addr{}
}

// Rule 4: what another replica took meanwhile costs a write that conflicts and a read, and then the next
// address is tried; one that was asked for is refused.
func TestConflictWithAnotherReplica(t *testing.T) {
	for what, materialized := range map[string]bool{"update": true, "create": false} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9-10")
			one, two := newReplica(t, s.pool), newReplica(t, s.pool)
			if materialized {
				s.materialize(t, one)
				controlplane.Until(t, "the other replica knows", func() bool { return len(two.index.Leases.ByPool(s.pool.Name)) == 2 })
			}
			two.watch.Shut()
			taken := s.vm("taken")
			taken.Addrs = []netip.Addr{s.addr(9)}
			one.one(taken)

			two.tap.Forget()
			wants := s.vm("wants")
			wants.Addrs = []netip.Addr{s.addr(9)}
			_, err := two.Allocate(t.Context(), wants)
			refused(t, err, ipam.ReasonAddressInUse, taken.Owner)
			two.cost("a conflict", 1, 1)
			two.watch.Open()
			wants.Addrs = nil
			if got := two.one(wants); got != s.addr(10) {
				t.Errorf("got %s, want %s", got, s.addr(10))
			}
		})
	}
}

// One replica's picture is far behind and all that it believes free is taken: it tries on until the pool
// is exhausted in truth, and says so.
func TestConflictsUntilExhausted(t *testing.T) {
	s := newSite("9-28")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	two.watch.Shut()
	for n := range 19 {
		one.one(s.vm(fmt.Sprint("first", n)))
	}
	done := two.adding(t.Context(), s.vm("last"))
	controlplane.Until(t, "the last address is taken", func() bool { return len(s.held(t)) == 20 })
	_, err := two.Allocate(t.Context(), s.vm("late"))
	refused(t, err, ipam.ReasonPoolExhausted)
	two.watch.Open()
	if got := <-done; got.err != nil {
		t.Error(got.err)
	}
}

// beside writes a second lease like one, with another address of a site, and what change makes of it.
func (r *replica) beside(s site, l lease.Lease, change func(*lease.Lease)) {
	r.t.Helper()
	first := l.Addr
	if l.Addr, l.Version = s.addr(9), 0; l.Addr == first {
		l.Addr = s.addr(10)
	}
	change(&l)
	if _, err := r.leases.Write(r.t.Context(), l); err != nil {
		r.t.Fatal(err)
	}
}

// apart makes two replicas serve one container at once with different addresses: neither sees the other's
// write, and the second believes the first one's address to be in use. It returns what each took, and
// their answers, which wait for the watches.
func apart(
	t *testing.T, s site, one, two *replica, first, second Request,
) (a, b netip.Addr, answers [2]<-chan outcome, leave func()) {
	t.Helper()
	one.watch.Shut()
	two.watch.Shut()
	ctx, leave := context.WithCancel(t.Context())
	answers[0] = one.adding(ctx, first)
	controlplane.Until(t, "the first is stored", func() bool { return len(s.held(t)) == 1 })
	for a = range s.held(t) {
	}
	two.index.MarkUnknown(a, 0, "nobody", two.leases.Now())
	answers[1] = two.adding(ctx, second)
	controlplane.Until(t, "the second is stored", func() bool { return len(s.held(t)) == 2 })
	for b = range s.held(t) {
		if b != a {
			break
		}
	}
	two.index.Forget(a)
	return a, b, answers, leave
}

// Rule 5: two replicas that serve one container at once from different pictures give one address, the
// same everywhere: the one that was written first. The other one is released.
func TestOneContainerAtTwoReplicas(t *testing.T) {
	for what, order := range map[string]func(one, two *replica){
		"the first sees it first":  func(one, two *replica) { one.watch.Open(); two.watch.Open() },
		"the second sees it first": func(one, two *replica) { two.watch.Open(); one.watch.Open() },
	} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9-12")
			one, two := newReplica(t, s.pool), newReplica(t, s.pool)
			p := newPod(t, "apart-"+strings.Fields(what)[1], s.host, one, two)
			request := s.of(p, p.Name+"-c")
			a, _, answers, leave := apart(t, s, one, two, request, request)
			defer leave()
			order(one, two)
			for n, answer := range answers {
				if got := <-answer; got.err != nil || !slices.Equal(got.addrs, []netip.Addr{a}) {
					t.Errorf("replica %d answers %v, %v; want %s", n, got.addrs, got.err, a)
				}
			}
			if got := settled(t, s, request, one, two); got != a {
				t.Errorf("%s is held, want %s", got, a)
			}
		})
	}
}

// Rule 5: a replica that served a container, too, has ended before it could look again. The address that it
// took goes back without another request, and the pod keeps the one that it was told.
func TestSecondAddressOfAnEndedRequest(t *testing.T) {
	s := newSite("9-12")
	one := newReplica(t, s.pool)
	p := newPod(t, "second", s.host, one)
	request := s.of(p, p.Name+"-c")
	a := one.one(request)
	one.beside(s, one.lease(a), func(*lease.Lease) {})
	controlplane.Until(t, "one address is held", func() bool { return len(s.held(t)) == 1 })
	settled(t, s, request, one)
}

// Rule 5: a lease that a replica made again from an old report of the pod, without knowing that a container
// of the pod had another address by then, goes; the container keeps what it was told.
func TestLeaseMadeAgainBesideANewerOne(t *testing.T) {
	s := newSite("9-12")
	one := newReplica(t, s.pool)
	p := newPod(t, "reported", s.host, one)
	request := s.of(p, p.Name+"-c")
	a := one.one(request)
	one.beside(s, one.lease(a), func(made *lease.Lease) {
		made.ContainerID, made.StartedAt = "", one.leases.Now().Add(time.Second)
	})
	controlplane.Until(t, "one address is held", func() bool { return len(s.held(t)) == 1 })
	settled(t, s, request, one)
}

// Rule 5: of two containers of one pod, served at once by two replicas, the newer has the address, and
// every replica says so to both.
func TestTwoContainersAtTwoReplicas(t *testing.T) {
	lately := ago()
	for what, newerFirst := range map[string]bool{
		"the newer is written first": true, "the older is written first": false,
	} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9-12")
			one, two := newReplica(t, s.pool), newReplica(t, s.pool)
			p := newPod(t, fmt.Sprintf("rivals-%v", newerFirst), s.host, one, two)
			older, newer := s.of(p, p.Name+"-older"), s.of(p, p.Name+"-newer")
			older.StartedAt, newer.StartedAt = lately(1), lately(2)
			requests := [2]Request{older, newer}
			if newerFirst {
				requests = [2]Request{newer, older}
			}
			_, _, answers, leave := apart(t, s, one, two, requests[0], requests[1])
			defer leave()
			one.watch.Open()
			two.watch.Open()
			for n, answer := range answers {
				switch got := <-answer; {
				case requests[n].ContainerID == newer.ContainerID && got.err != nil:
					t.Errorf("the newer: %v", got.err)
				case got.err != nil:
					refused(t, got.err, ipam.ReasonContainerSuperseded)
				}
			}
			settled(t, s, newer, one, two)
			for _, r := range []*replica{one, two} {
				if _, err := r.Allocate(t.Context(), older); err != nil {
					refused(t, err, ipam.ReasonContainerSuperseded)
				} else {
					t.Error("the older has an address")
				}
			}
			settled(t, s, newer, one, two)
		})
	}
}

// Rule 5, and promise 4: a replica whose picture is old must not release the address that the container
// is left with, because it still sees another that has gone.
func TestOldPictureOfTwoLeases(t *testing.T) {
	s := newSite("9-12")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	p := newPod(t, "picture", s.host, one, two)
	request := s.of(p, "picture-c")
	a, b, answers, leave := apart(t, s, one, two, request, request)
	leave() // both clients go; both leases stay
	for _, answer := range answers {
		refused(t, (<-answer).err, ipam.ReasonOutcomeUnknown)
	}
	one.watch.Open()
	two.watch.Open()
	both := map[netip.Addr]string{a: "picture-c", b: "picture-c"}
	one.picture(s, both)
	two.picture(s, both)

	two.watch.Shut()
	if _, released, err := one.ReleaseAddress(t.Context(), a, "picture-c", "", nil); err != nil || !released {
		t.Fatal(released, err)
	}
	one.picture(s, map[netip.Addr]string{b: "picture-c"})
	if got := one.one(request); got != b {
		t.Fatalf("got %s, want %s", got, b)
	}
	if got := two.one(request); got != b {
		t.Errorf("the replica with the old picture answers %s, want %s", got, b)
	}
	if held := s.held(t); len(held) != 1 || held[b] == "" {
		t.Errorf("held: %v, want %s", held, b)
	}
	two.watch.Open()
}

// Rule 2: a replica that was stopped, and is asked about an address that has moved on, does not answer it.
func TestStoppedReplica(t *testing.T) {
	s := newSite("9-10")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	p := newPod(t, "stopped", s.host, one, two)
	request := s.of(p, "stopped-c")
	a := one.one(request)
	two.picture(s, map[netip.Addr]string{a: "stopped-c"})

	two.watch.Shut()
	if _, err := ReleaseHost(t.Context(), one.leases, s.host, time.Now(), lease.Change{}); err != nil {
		t.Fatal(err)
	}
	other := s.vm("other")
	other.Addrs = []netip.Addr{a}
	one.picture(s, nil)
	one.one(other)
	done := two.adding(t.Context(), request)
	controlplane.Until(t, "it has another address", func() bool { return len(s.held(t)) == 2 })
	two.watch.Open()
	got := <-done
	if got.err != nil || len(got.addrs) != 1 || got.addrs[0] == a {
		t.Errorf("got %v, %v; want another than %s", got.addrs, got.err, a)
	}
	for _, r := range []*replica{one, two} {
		if again := r.one(request); !slices.Equal([]netip.Addr{again}, got.addrs) {
			t.Errorf("answers %s, want %v", again, got.addrs)
		}
	}
}

// The same where nothing else took the address: free again, it is taken anew.
func TestStoppedReplicaAndAFreeAddress(t *testing.T) {
	s := newSite("9")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	p := newPod(t, "freed", s.host, one, two)
	request := s.of(p, "freed-c")
	a := one.one(request)
	two.picture(s, map[netip.Addr]string{a: "freed-c"})
	two.watch.Shut()
	if _, err := ReleaseHost(t.Context(), one.leases, s.host, time.Now(), lease.Change{}); err != nil {
		t.Fatal(err)
	}
	done := two.adding(t.Context(), request)
	controlplane.Until(t, "it is held again", func() bool { return s.held(t)[a] == "freed-c" })
	two.watch.Open()
	if got := <-done; got.err != nil || !slices.Equal(got.addrs, []netip.Addr{a}) {
		t.Errorf("got %v, %v", got.addrs, got.err)
	}
	one.picture(s, map[netip.Addr]string{a: "freed-c"})
}

// Many containers, each asked for at both replicas at once, and again with the pods' next containers: one
// address each, the same everywhere, none twice.
func TestManyContainersAtTwoReplicas(t *testing.T) {
	s := newSite("9-60")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	var pods []*corev1.Pod
	for n := range 16 {
		pods = append(pods, newPod(t, fmt.Sprintf("crowd-%d", n), s.host, one, two))
	}
	for round := range 3 {
		type both struct {
			request Request
			answers [2]<-chan outcome
		}
		var all []both
		for _, p := range pods {
			request := s.of(p, fmt.Sprintf("%s-c%d", p.Name, round))
			all = append(all, both{
				request, [2]<-chan outcome{one.adding(t.Context(), request), two.adding(t.Context(), request)},
			})
		}
		given := map[netip.Addr]string{}
		for _, b := range all {
			x0, x1 := <-b.answers[0], <-b.answers[1]
			if x0.err != nil || x1.err != nil || !slices.Equal(x0.addrs, x1.addrs) {
				t.Fatalf("%s: %v, %v and %v, %v", b.request.ContainerID, x0.addrs, x0.err, x1.addrs, x1.err)
			}
			if other, twice := given[x0.addrs[0]]; twice {
				t.Fatalf("%s is given to %s and %s", x0.addrs[0], other, b.request.ContainerID)
			}
			given[x0.addrs[0]] = b.request.ContainerID
		}
		held := s.held(t)
		if len(held) != len(pods) {
			t.Errorf("%d addresses are held, want %d", len(held), len(pods))
		}
		for a, container := range given {
			if held[a] != container {
				t.Errorf("%s is held by %q, want %s", a, held[a], container)
			}
		}
	}
}

// Rule 5: of two addresses of one container the one that was written first stays, also where its object was
// written again since, for another reason: the container was told that one.
func TestFirstOfTwoLeasesWrittenAgain(t *testing.T) {
	for what, again := range map[string]func(t *testing.T, r *replica, l lease.Lease) (lease.Lease, bool){
		"pool-edit": func(_ *testing.T, _ *replica, l lease.Lease) (lease.Lease, bool) {
			p := l.Params
			p.Gateway = l.Addr.Prev()
			return lease.Refresh(l, p)
		},
		"right-uid": func(_ *testing.T, r *replica, l lease.Lease) (lease.Lease, bool) {
			return lease.Bind(l, l.Params, l.Holder, l.Retention, r.leases.Now())
		},
		"later-start": func(_ *testing.T, r *replica, l lease.Lease) (lease.Lease, bool) {
			return lease.Renew(l, r.leases.Now())
		},
		"restored": func(t *testing.T, r *replica, l lease.Lease) (lease.Lease, bool) {
			t.Helper()
			released, _ := lease.Release(l, r.leases.Now(), lease.Change{})
			released, err := r.leases.Write(t.Context(), released)
			if err != nil {
				t.Fatal(err)
			}
			return lease.Restore(l, released), true
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9-12")
			one, two := newReplica(t, s.pool), newReplica(t, s.pool)
			p := newPod(t, "first-of-two-"+what, s.host, one, two)
			request := s.of(p, p.Name+"-c")
			a := one.one(request)
			one.watch.Shut() // the replicas see all at once
			two.watch.Shut()
			first := one.lease(a)
			two.beside(s, first, func(*lease.Lease) {})
			next, ok := again(t, two, first)
			if !ok {
				t.Fatal("nothing to write")
			}
			if _, err := two.leases.Write(t.Context(), next); err != nil {
				t.Fatal(err)
			}
			one.watch.Open()
			two.watch.Open()
			controlplane.Until(t, "one address is held", func() bool { return len(s.held(t)) == 1 })
			if got := settled(t, s, request, one, two); got != a {
				t.Errorf("%s is held, the container was told %s", got, a)
			}
		})
	}
}

// newest matches a look at the newest state.
func newest(r *http.Request) bool {
	return intercept.Of(v1.IPResource)(r) && r.URL.Query().Get("limit") == "1"
}

// Rule 5: a replica that believes a pool full asks for the newest state before it says so: the container may have an
// address that its watch has not delivered yet.
func TestFullPoolAtAReplicaThatLagsBehind(t *testing.T) {
	s := newSite("9-10")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	for i := range 2 {
		l := one.lease(one.one(s.of(newPod(t, fmt.Sprint("full-", i), s.host, one, two), fmt.Sprint("full-c-", i))))
		controlplane.Until(t, "the other replica knows of the lease", func() bool { return two.index.Feed.Seen() >= l.Version })
	}
	next := s.of(newPod(t, "full-next", s.host, one, two), "full-c-next")
	two.watch.Shut()
	one.del(ReleaseRequest{ContainerID: "full-c-0"})
	a := one.one(next)
	version := one.lease(a).Version
	two.tap.On(newest, func(r *http.Request, transport http.RoundTripper) (*http.Response, error) {
		two.watch.Open()
		if err := two.index.Feed.WaitSeen(r.Context(), version); err != nil {
			return nil, err
		}
		return transport.RoundTrip(r)
	})
	if got := two.one(next); got != a {
		t.Errorf("the container has %s and is told %s", a, got)
	}
}

// However many requests a full pool refuses at once, one look at the newest state serves those that came before it.
func TestRefusalsOfAFullPoolShareALook(t *testing.T) {
	const refusals = 16
	s := newSite("9-9")
	r := newReplica(t, s.pool)
	r.one(s.of(newPod(t, "only", s.host, r), "only-c"))
	var requests []Request
	for i := range refusals {
		requests = append(requests, s.of(newPod(t, fmt.Sprint("none-", i), s.host, r), fmt.Sprint("none-c-", i)))
	}
	var all []<-chan outcome
	for _, request := range requests { // at once: their pods are there
		all = append(all, r.adding(t.Context(), request))
	}
	for _, o := range all {
		refused(t, (<-o).err, ipam.ReasonPoolExhausted)
	}
	if n := r.tap.Count(newest); n < 1 || n > refusals/2 {
		t.Errorf("%d looks for %d refusals", n, refusals)
	}
}
