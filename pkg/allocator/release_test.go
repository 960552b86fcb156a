package allocator

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// Rule 6: a release is one write; a repeated one, and one of a container that nobody knows, cost nothing.
func TestRelease(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	p := newPod(t, "releases", s.host, r)
	a := r.one(s.of(p, "releases-c"))
	held := r.lease(a)
	r.tap.Forget()
	if got := r.del(ReleaseRequest{ContainerID: "releases-c"}); !slices.Equal(got, []netip.Addr{a}) {
		t.Errorf("released %v, want %s", got, a)
	}
	r.cost("DEL", 1, 0)
	got := r.lease(a)
	want := lease.Lease{
		Addr: a, Params: lease.Params{Pool: s.pool.Name, Bits: 24, Gateway: s.addr(254)}, Version: got.Version,
		Updated: got.Updated,
		History: lease.NewHistory([]lease.Past{{
			Holder: "default/releases", PodUID: string(p.UID), Host: s.host, Since: held.Updated, Until: got.Updated,
		}}),
	}
	if diff := cmp.Diff(want, got, compareAddrs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r.tap.Forget()
	for _, container := range []string{"releases-c", "releases-nobody"} {
		if got := r.del(ReleaseRequest{ContainerID: container}); len(got) != 0 {
			t.Errorf("%s released %v", container, got)
		}
	}
	r.cost("DEL of nothing", 0, 0)
}

// Rule 6: a release matches by container, where that is unknown by pod UID, and by owner: never more.
func TestReleaseMatches(t *testing.T) {
	held := lease.Lease{State: lease.Active, Holder: lease.Holder{
		ContainerID: "c", IfName: "eth0", Namespace: "n", PodName: "p", PodUID: "u", StartedAt: time.Unix(100, 0),
	}}
	change := func(change func(*lease.Lease)) lease.Lease {
		l := held
		change(&l)
		return l
	}
	bare := change(func(l *lease.Lease) { l.ContainerID = "" })
	owned := change(func(l *lease.Lease) { l.Holder = lease.Holder{Owner: "o", IfName: "eth0", ContainerID: "c"} })
	for what, test := range map[string]struct {
		lease lease.Lease
		r     ReleaseRequest
		want  bool
	}{
		"its container":                          {held, ReleaseRequest{ContainerID: "c"}, true},
		"another container":                      {held, ReleaseRequest{ContainerID: "d"}, false},
		"an earlier container":                   {change(func(l *lease.Lease) { l.Superseded = []string{"d"} }), ReleaseRequest{ContainerID: "d"}, false},
		"an earlier container, by the pod's UID": {change(func(l *lease.Lease) { l.Superseded = []string{"d"} }), ReleaseRequest{ContainerID: "d", PodUID: "u"}, false},
		"its interface":                          {held, ReleaseRequest{ContainerID: "c", IfName: "eth0"}, true},
		"another interface":                      {held, ReleaseRequest{ContainerID: "c", IfName: "net1"}, false},
		"its pod, where a container is known":    {held, ReleaseRequest{PodUID: "u"}, false},
		"its pod, where no container is known":   {bare, ReleaseRequest{PodUID: "u"}, true},
		"another pod":                            {bare, ReleaseRequest{PodUID: "v"}, false},
		"nothing at all":                         {bare, ReleaseRequest{}, false},
		"its owner":                              {owned, ReleaseRequest{Owner: "o"}, true},
		"its owner, another container":           {owned, ReleaseRequest{Owner: "o", ContainerID: "d"}, false},
		"its owner, of no container":             {change(func(l *lease.Lease) { l.Owner, l.ContainerID = "o", "" }), ReleaseRequest{Owner: "o", ContainerID: "d"}, true},
		"another owner":                          {owned, ReleaseRequest{Owner: "q"}, false},
		"begun before the lease":                 {held, ReleaseRequest{ContainerID: "c", StartedAt: time.Unix(99, 0)}, false},
		"begun with the lease":                   {held, ReleaseRequest{ContainerID: "c", StartedAt: time.Unix(100, 0)}, true},
		"begun after the lease":                  {held, ReleaseRequest{ContainerID: "c", StartedAt: time.Unix(101, 0)}, true},
		"free":                                   {change(func(l *lease.Lease) { l.State = lease.Available }), ReleaseRequest{ContainerID: "c"}, false},
		"reserved":                               {change(func(l *lease.Lease) { l.State = lease.Reserved }), ReleaseRequest{ContainerID: "c"}, false},
	} {
		t.Run(what, func(t *testing.T) {
			if got := test.r.matches(test.lease); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// A release of one network leaves those of others.
func TestReleaseOfANetwork(t *testing.T) {
	a, b := newSite("9-12"), newSite("9-12")
	b.host, b.pool.Spec.Hosts = a.host, a.pool.Spec.Hosts
	a.pool.Spec.Network, b.pool.Spec.Network = "blue", "green"
	r := newReplica(t, a.pool, b.pool)
	p := newPod(t, "networks", a.host, r)
	blue, green := a.of(p, "networks-c"), a.of(p, "networks-c")
	blue.Network, green.Network, green.IfName = "blue", "green", "net1"
	r.one(blue)
	left := r.one(green)
	r.del(ReleaseRequest{ContainerID: "networks-c", Network: "blue"})
	if len(a.held(t)) != 0 || b.held(t)[left] != "networks-c" {
		t.Errorf("held: blue %v, green %v", a.held(t), b.held(t))
	}
}

// The clock of a host is ahead: what it says counts as two seconds from now at most, so that its leases can be released
// and taken over by those whose clocks are right.
func TestStartedInTheFuture(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	request := s.of(newPod(t, "ahead", s.host, r), "ahead-c")
	request.StartedAt = time.Now().Add(time.Hour)
	a := r.one(request)
	if began := r.lease(a).StartedAt; time.Since(began) < -2*time.Second {
		t.Errorf("stored as begun at %v, which is to come", began)
	}
	d := del(request)
	d.StartedAt = time.Now().Add(2 * time.Second)
	if got := r.del(d); !slices.Equal(got, []netip.Addr{a}) {
		t.Errorf("released %v, want %s", got, a)
	}
	request.StartedAt = d.StartedAt.Add(time.Millisecond)
	if _, err := r.Allocate(t.Context(), request); err != nil {
		t.Errorf("an ADD after a DEL from the future: %v", err)
	}
	if got := r.del(del(request)); !slices.Equal(got, []netip.Addr{a}) { // it tells no time
		t.Errorf("then released %v, want %s", got, a)
	}
}

// Rule 6: a DEL that comes before its ADD wins, whether the caller told its times or they arrive in that
// order; an ADD that began later is served.
func TestDelBeforeItsAdd(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	p := newPod(t, "overtaken", s.host, r)
	at := ago()
	for what, test := range map[string]struct {
		del, add time.Time
		all      bool // the DEL names no interface
		refused  bool
	}{
		"told, DEL after the ADD":        {at(2), at(1), false, true},
		"told, DEL for all interfaces":   {at(2), at(1), true, true},
		"told, at the same time":         {at(2), at(2), false, true},
		"told, ADD after the DEL":        {at(2), at(3), false, false},
		"arrived, ADD after the DEL":     {time.Time{}, time.Time{}, false, false},
		"ADD of old, DEL arrived":        {time.Time{}, at(1), false, true},
		"ADD arrived, DEL told long ago": {at(1), time.Time{}, false, false},
	} {
		t.Run(what, func(t *testing.T) {
			r := r.in(t)
			request := s.of(p, "overtaken "+what)
			request.StartedAt, request.IfName = test.add, "eth0"
			d := del(request)
			d.StartedAt = test.del
			if test.all {
				d.IfName = ""
			}
			r.del(d)
			r.tap.Forget()
			_, err := r.Allocate(t.Context(), request)
			if test.refused {
				refused(t, err, ipam.ReasonContainerDeleted)
				if w := r.tap.Count(writes); w != 0 {
					t.Errorf("%d writes", w)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r.del(ReleaseRequest{ContainerID: request.ContainerID})
		})
	}
	if held := s.held(t); len(held) != 0 {
		t.Errorf("held: %v", held)
	}
}

// Rule 6: a DEL that comes while the write of its ADD is under way wins, on both sides of the commit.
func TestDelDuringItsAdd(t *testing.T) {
	lately := ago()
	for what, hold := range map[string]func(*intercept.Gate) intercept.Hook{
		"before the write is stored": func(g *intercept.Gate) intercept.Hook { return g.Hold },
		"after the write is stored":  func(g *intercept.Gate) intercept.Hook { return g.HoldAnswer },
	} {
		for _, told := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, times told %v", what, told), func(t *testing.T) {
				s := newSite("9-12")
				r := newReplica(t, s.pool)
				p := newPod(t, fmt.Sprintf("during-%s-%v", what[:5], told), s.host, r)
				request, d := s.of(p, p.Name+"-c"), ReleaseRequest{ContainerID: p.Name + "-c"}
				if told {
					request.StartedAt, d.StartedAt = lately(1), lately(2)
				}
				gate := intercept.NewGate()
				remove := r.tap.On(writes, hold(gate))
				done := r.adding(t.Context(), request)
				<-gate.Arrived()
				remove() // the DEL's own write is not held
				r.del(d)
				gate.Open()
				refused(t, (<-done).err, ipam.ReasonContainerDeleted)
				controlplane.Until(t, "nothing is held", func() bool { return len(s.held(t)) == 0 })
				_, err := r.Allocate(t.Context(), func() Request { request.StartedAt = lately(1); return request }())
				refused(t, err, ipam.ReasonContainerDeleted)
				r.picture(s, nil)
			})
		}
	}
}

// Rule 6: a DEL at a replica that does not know the lease yet leaves a tombstone there. The lease is released
// when that replica's watch delivers it.
func TestDelAtAReplicaThatLagsBehind(t *testing.T) {
	lately := ago()
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprintf("times told %v", told), func(t *testing.T) {
			s := newSite("9-12")
			one, two := newReplica(t, s.pool), newReplica(t, s.pool)
			p := newPod(t, fmt.Sprintf("lags-%v", told), s.host, one)
			request, d := s.of(p, p.Name+"-c"), ReleaseRequest{ContainerID: p.Name + "-c"}
			if told {
				request.StartedAt, d.StartedAt = lately(1), lately(2)
			}
			two.watch.Shut()
			a := one.one(request)
			if got := two.del(d); len(got) != 0 {
				t.Fatalf("released %v of what it cannot know", got)
			}
			if s.held(t)[a] == "" {
				t.Fatal("it was released before the watch: this test proves nothing")
			}
			two.watch.Open()
			controlplane.Until(t, "the lease is released", func() bool { return len(s.held(t)) == 0 })
			one.picture(s, nil)
		})
	}
}

// The same through a relist: what came while the watch was away is looked at like what the watch brings.
func TestDelAtAReplicaWhoseWatchIsCut(t *testing.T) {
	s := newSite("9-12")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	p := newPod(t, "cut", s.host, one)
	two.tap.On(watches, intercept.Answer(410, metav1.StatusReasonExpired, 0))
	two.watch.Shut()
	one.one(s.of(p, "cut-c"))
	two.del(ReleaseRequest{ContainerID: "cut-c"})
	two.watch.Cut()
	controlplane.Until(t, "the lease is released", func() bool { return len(s.held(t)) == 0 })
}

// What could not be released when the watch delivered it is released later.
func TestUnconfirmedLeaseIsReleasedWhenTheAPIServerIsBack(t *testing.T) {
	s := newSite("9-12")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	p := newPod(t, "orphan", s.host, one)
	two.watch.Shut()
	one.one(s.of(p, "orphan-c"))
	two.del(ReleaseRequest{ContainerID: "orphan-c"})
	mend := two.tap.On(writes, intercept.Fail(errRefused))
	two.watch.Open()
	controlplane.Until(t, "the release failed", func() bool { return two.tap.Count(writes) > 0 })
	mend()
	controlplane.Until(t, "the lease is released", func() bool { return len(s.held(t)) == 0 })
}

// Only ADDs that began before the DEL are concerned: the lease of a later ADD survives the tombstone.
func TestMarkSparesALaterAdd(t *testing.T) {
	lately := ago()
	s := newSite("9-12")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	p := newPod(t, "spared", s.host, one)
	request := s.of(p, "spared-c")
	two.del(ReleaseRequest{ContainerID: "spared-c", StartedAt: lately(2)})
	request.StartedAt = lately(3)
	a := one.one(request)
	two.picture(s, map[netip.Addr]string{a: "spared-c"})
	fence := two.one(Request{Host: s.host, Owner: "spared-fence"}) // what the watch brought was looked at
	if got := s.held(t); got[a] != "spared-c" || len(got) != 2 {
		t.Errorf("held: %v, want %s and %s", got, a, fence)
	}
}

// The release of one address asks who holds it, of the API server.
func TestReleaseAddress(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	p := newPod(t, "address", s.host, r)
	a := r.one(s.of(p, "address-c"))
	b := r.one(Request{Host: s.host, Owner: "vm-address"})
	for what, test := range map[string]struct {
		addr             netip.Addr
		container, owner string
		want             ipam.Reason
	}{
		"another container":           {a, "other", "", ipam.ReasonAddressNotHeld},
		"an owner of a container's":   {a, "", "vm-address", ipam.ReasonAddressNotHeld},
		"another owner":               {b, "", "other", ipam.ReasonAddressNotHeld},
		"a container of an owner's":   {b, "address-c", "", ipam.ReasonAddressNotHeld},
		"in no pool":                  {netip.MustParseAddr("203.0.113.9"), "c", "", ipam.ReasonAddressNotInPool},
		"nobody in particular":        {a, "", "", ipam.ReasonAddressNotHeld},
		"nobody, of an owner's lease": {b, "", "", ipam.ReasonAddressNotHeld},
	} {
		t.Run(what, func(t *testing.T) {
			_, released, err := r.ReleaseAddress(t.Context(), test.addr, test.container, test.owner, nil)
			refused(t, err, test.want)
			if released {
				t.Error("released")
			}
		})
	}
	if held := s.held(t); len(held) != 2 {
		t.Fatalf("held: %v, want both", held)
	}
	for _, test := range []struct {
		addr             netip.Addr
		container, owner string
	}{{a, "address-c", ""}, {b, "", "vm-address"}} {
		r.tap.Forget()
		if l, released, err := r.ReleaseAddress(t.Context(), test.addr, test.container, test.owner, nil); err != nil ||
			!released || l.Addr != test.addr {
			t.Errorf("%+v, released %v, %v", l, released, err)
		}
		r.cost("release by address", 1, 1)
		if _, released, err := r.ReleaseAddress(t.Context(), test.addr, test.container, test.owner, nil); err != nil || released {
			t.Errorf("again: released %v, %v", released, err)
		}
		r.cost("again", 0, 1)
	}
	if _, released, err := r.ReleaseAddress(t.Context(), s.addr(12), "c", "", nil); err != nil || released {
		t.Errorf("one that was never used: released %v, %v", released, err)
	}
}

// A host that is off gives up what it holds, and nothing else; to ask again is no error.
func TestReleaseHost(t *testing.T) {
	s := newSite("9-40")
	other := newSite("9-12")
	r := newReplica(t, s.pool, other.pool)
	for n := range 20 {
		r.one(Request{Host: s.host, Owner: fmt.Sprintf("vm-host-%d", n)})
	}
	p := newPod(t, "host-pod", s.host, r)
	r.one(s.of(p, "host-c"))
	r.one(Request{Host: other.host, Owner: "vm-other-host"})
	r.tap.Forget()
	got, err := ReleaseHost(t.Context(), r.leases, s.host, time.Now(), lease.Change{})
	if err != nil || len(got) != 21 || !slices.IsSortedFunc(got,
		func(a, b lease.Lease) int { return a.Addr.Compare(b.Addr) }) {
		t.Errorf("released %d, %v; want 21 in order", len(got), err)
	}
	r.cost("host release", 21, 2) // lists: by the field and by the label of second attachments
	if len(s.held(t)) != 0 || len(other.held(t)) != 1 {
		t.Errorf("held: %v and %v", s.held(t), other.held(t))
	}
	if got, err := ReleaseHost(t.Context(), r.leases, s.host, time.Now(), lease.Change{}); err != nil || len(got) != 0 {
		t.Errorf("again: %v, %v", got, err)
	}
	r.picture(s, nil)
	if a := r.one(s.of(p, "host-c")); s.held(t)[a] != "host-c" {
		t.Error("the host's pods get no address any more")
	}
}

// A host release that was stuck on its way takes nothing that the host got after it was asked for.
func TestReleaseHostThatIsLate(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	a := r.one(Request{Host: s.host, Owner: "vm-late"})
	got, err := ReleaseHost(t.Context(), r.leases, s.host, r.lease(a).Updated.Add(-clockError-time.Millisecond),
		lease.Change{})
	if err != nil || len(got) != 0 || r.lease(a).State != lease.Active {
		t.Errorf("released %v, %v", got, err)
	}
	for _, began := range []time.Time{r.leases.Now(), {}} {
		if got, err = ReleaseHost(t.Context(), r.leases, s.host, began, lease.Change{}); err != nil || len(got) != 1 {
			t.Errorf("asked for at %s: released %v, %v", began, got, err)
		}
		r.one(Request{Host: s.host, Owner: "vm-later"})
	}
}

// A host release, repeated and at once with others and with ADDs of the host, releases each lease once.
func TestReleaseHostAtOnce(t *testing.T) {
	s := newSite("9-60")
	r := newReplica(t, s.pool)
	for n := range 20 {
		r.one(Request{Host: s.host, Owner: fmt.Sprintf("vm-once-%d", n)})
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	times := map[netip.Addr]int{}
	for range 3 {
		all.Go(func() {
			got, err := ReleaseHost(t.Context(), r.leases, s.host, time.Now(), lease.Change{})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, l := range got {
				times[l.Addr]++
			}
		})
	}
	for n := range 20 {
		all.Go(func() {
			if _, err := r.Allocate(t.Context(), Request{Host: s.host, Owner: fmt.Sprintf("vm-new-%d", n)}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := ReleaseHost(t.Context(), r.leases, s.host, time.Now(), lease.Change{}); err != nil {
		t.Error(err)
	}
	if held := s.held(t); len(held) != 0 {
		t.Errorf("held: %v", held)
	}
	for a, n := range times {
		if n > 3 { // each of the three calls takes what came meanwhile, in the seconds that clocks may be apart, once
			t.Errorf("%s was released %d times", a, n)
		}
	}
}

// A host release that fails half way says what it did, and the next one does the rest.
func TestReleaseHostHalfWay(t *testing.T) {
	s := newSite("9-40")
	r := newReplica(t, s.pool)
	for n := range 10 {
		r.one(Request{Host: s.host, Owner: fmt.Sprintf("vm-half-%d", n)})
	}
	r.tap.Forget()
	mend := r.tap.On(intercept.All(writes, intercept.Named(s.addr(12).String())), intercept.Fail(errRefused))
	hit := s.held(t)[s.addr(12)] != "" || r.lease(s.addr(12)).State == lease.Active
	got, err := ReleaseHost(t.Context(), r.leases, s.host, time.Now(), lease.Change{})
	if hit == (err == nil) || len(got) != 10-map[bool]int{true: 1}[hit] {
		t.Errorf("released %d, %v; %s held %v", len(got), err, s.addr(12), hit)
	}
	mend()
	if _, err := ReleaseHost(t.Context(), r.leases, s.host, time.Now(), lease.Change{}); err != nil {
		t.Error(err)
	}
	if held := s.held(t); len(held) != 0 {
		t.Errorf("held: %v", held)
	}
}

// A release whose caller has gone is not begun.
func TestReleaseOfACallerThatHasGone(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	a := r.one(Request{Host: s.host, Owner: "vm-gone"})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	_, err := r.Release(ctx, ReleaseRequest{Owner: "vm-gone"})
	refused(t, err, ipam.ReasonUnavailable)
	if l := r.lease(a); l.State != lease.Active {
		t.Errorf("%+v", l)
	}
}

// A release whose write has an unknown outcome is retryable, and the retry finds out.
func TestReleaseOfUnknownOutcome(t *testing.T) {
	for what, hook := range map[string]intercept.Hook{
		"stored": intercept.LoseAnswer(errReset), "not stored": intercept.Fail(errReset),
	} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9")
			r := newReplica(t, s.pool)
			r.one(Request{Host: s.host, Owner: "vm-unknown " + what})
			r.watch.Shut() // the watch does not help
			mend := r.tap.On(writes, hook)
			_, err := r.Release(t.Context(), ReleaseRequest{Owner: "vm-unknown " + what})
			refused(t, err, ipam.ReasonOutcomeUnknown)
			mend()
			r.del(ReleaseRequest{Owner: "vm-unknown " + what})
			if held := s.held(t); len(held) != 0 {
				t.Errorf("held: %v", held)
			}
			r.watch.Open()
			r.picture(s, nil)
			r.one(s.vm("next"))
		})
	}
}

// A release that meets another writer looks again, and leaves what has become somebody else's.
func TestReleaseMeetsAnotherWriter(t *testing.T) {
	s := newSite("9")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	a := one.one(Request{Host: s.host, Owner: "vm-met", ContainerID: "met-c"})
	two.picture(s, map[netip.Addr]string{a: "met-c"})

	// Another writer changed the object, and it is still the same holder's: released.
	two.watch.Shut()
	l := one.lease(a)
	l.Gateway = s.addr(253)
	if _, err := one.leases.Write(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	two.tap.Forget()
	if got := two.del(ReleaseRequest{ContainerID: "met-c"}); len(got) != 1 {
		t.Errorf("released %v", got)
	}
	two.cost("a release that met a change", 2, 1)
	two.watch.Open()

	// It was released and has another holder: left alone.
	one.picture(s, nil)
	b := one.one(Request{Host: s.host, Owner: "vm-old", ContainerID: "old-c"})
	two.picture(s, map[netip.Addr]string{b: "old-c"})
	two.watch.Shut()
	one.del(ReleaseRequest{ContainerID: "old-c"})
	if got := one.one(Request{Host: s.host, Owner: "vm-new", ContainerID: "new-c"}); got != b {
		t.Fatalf("%s, want %s", got, b)
	}
	if got := two.del(ReleaseRequest{ContainerID: "old-c"}); len(got) != 0 {
		t.Errorf("released %v, which is somebody else's", got)
	}
	if got := s.held(t); got[b] != "new-c" {
		t.Errorf("held: %v", got)
	}
	two.watch.Open()
}

// Writers that are always faster end in a refusal, not in a loop.
func TestReleaseAgainstEndlessWriters(t *testing.T) {
	s := newSite("9")
	r := newReplica(t, s.pool)
	r.one(Request{Host: s.host, Owner: "vm-endless"})
	r.tap.On(writes, intercept.Answer(409, metav1.StatusReasonConflict, 0))
	_, err := r.Release(t.Context(), ReleaseRequest{Owner: "vm-endless"})
	refused(t, err, ipam.ReasonUnavailable)
	if !errors.As(err, new(*ipam.Refusal)) || r.tap.Count(writes) > maxAttempts+1 {
		t.Errorf("%d writes", r.tap.Count(writes))
	}
}
