package allocator

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// ends deletes a pod that takes so long to end, and waits until the replica's cache knows.
func (r *replica) ends(p *corev1.Pod, grace time.Duration) {
	r.t.Helper()
	if err := cluster.AdminFor(r.t).Delete(r.t.Context(), p,
		client.GracePeriodSeconds(int64(grace.Seconds()))); err != nil {
		r.t.Fatal(err)
	}
	controlplane.Until(r.t, "the cache knows that the pod is being deleted", func() bool {
		var o corev1.Pod
		err := r.cached.Get(r.t.Context(), types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, &o)
		return err == nil && o.DeletionTimestamp != nil
	})
}

// waiting waits until so many requests wait for other pods.
func (r *replica) waiting(n int) {
	r.t.Helper()
	controlplane.Until(r.t, fmt.Sprintf("%d requests wait", n), func() bool {
		r.departures.waits.mu.Lock()
		defer r.departures.waits.mu.Unlock()
		return len(r.departures.waits.by) == n
	})
}

// appPod makes a pod of the site's app.
func (r *replica) appPod(s site, name string) *corev1.Pod {
	r.t.Helper()
	terms.set(name, s.app())
	return newPod(r.t, name, s.host, r)
}

// Pods of an app that come while earlier ones are ending get the addresses of these, as many as are ending; one more
// gets a new address at once.
func TestNextPodsWaitForThoseThatEnd(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	var old []*corev1.Pod
	var had []netip.Addr
	for i := range 3 {
		p := r.appPod(s, fmt.Sprint("ends-old-", i))
		old, had = append(old, p), append(had, r.one(s.of(p, p.Name)))
	}
	r.ends(old[0], time.Minute)
	r.ends(old[1], time.Minute)
	var next []<-chan outcome
	for i := range 2 {
		p := r.appPod(s, fmt.Sprint("ends-new-", i))
		next = append(next, r.adding(t.Context(), s.of(p, p.Name)))
		r.waiting(i + 1)
	}
	third := r.appPod(s, "ends-new-2")
	if a := r.one(s.of(third, third.Name)); slices.Contains(had, a) {
		t.Errorf("the third pod got %s", a)
	}
	r.waiting(2)
	if _, _, err := r.Propose(t.Context(), s.of(r.appPod(s, "ends-new-3"), "ends-new-3")); err == nil {
		t.Error("explaining a pod that would wait says that it gets an address")
	} else {
		refused(t, err, ipam.ReasonClaimConflict, "ends-old-0", "was deleted")
	}
	var got []netip.Addr
	for i := range 2 {
		r.del(del(s.of(old[i], old[i].Name)))
		removePod(t, old[i])
	}
	for _, done := range next {
		o := <-done
		if o.err != nil {
			t.Fatal(o.err)
		}
		got = append(got, o.addrs...)
	}
	slices.SortFunc(got, netip.Addr.Compare)
	slices.SortFunc(had, netip.Addr.Compare)
	for _, a := range got {
		if !slices.Contains(had, a) {
			t.Errorf("%s is none of the earlier pods': %s", a, had)
		}
	}
	r.waiting(0)
}

// A request that waits goes on waiting when another one takes the last address that the claim may have beside.
func TestSurgeBesideOneThatWaits(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	bounded := s.app()
	bounded.Room = 3
	pod := func(name string) *corev1.Pod {
		terms.set(name, bounded)
		return newPod(t, name, s.host, r)
	}
	old, stays := pod("surge-old"), pod("surge-stays")
	a, b := r.one(s.of(old, old.Name)), r.one(s.of(stays, stays.Name))
	r.ends(old, time.Minute)
	next, beside := pod("surge-next"), pod("surge-beside")
	waits := r.adding(t.Context(), s.of(next, next.Name))
	r.waiting(1)
	if c := r.one(s.of(beside, beside.Name)); c == a || c == b {
		t.Errorf("the surge got %s", c)
	}
	select {
	case o := <-waits:
		t.Fatalf("it did not wait: %v, %v", o.addrs, o.err)
	case <-time.After(2 * waitPoll):
	}
	r.del(del(s.of(old, old.Name)))
	if o := <-waits; o.err != nil || !slices.Equal(o.addrs, []netip.Addr{a}) {
		t.Errorf("%v, %v; want %s", o.addrs, o.err, a)
	}
}

// What a pod leaves is waited for only where it takes the place of what is lacking.
func TestReplaces(t *testing.T) {
	four, six := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("2001:db8::9")
	e := terminatingPod{has: []lease.Lease{{Addr: four, Holder: lease.Holder{Slot: 1}}}}
	for want, p := range map[bool]ipam.Pick{
		true: {Current: lease.Lease{Addr: four.Next()}, Slot: 1}, false: {Current: lease.Lease{Addr: six}, Slot: 1},
	} {
		if e.replaces([]ipam.Pick{p}) != want {
			t.Errorf("%v: want %t", p.Current.Addr, want)
		}
	}
	if e.replaces(nil) || e.replaces([]ipam.Pick{{Current: lease.Lease{Addr: four.Next()}}}) || (terminatingPod{}).
		replaces([]ipam.Pick{{}}) {
		t.Error("it replaces what it has not")
	}
}

// Where pods have hosts with pools of their own, each waits for one whose address it can have.
func TestNextPodsOfSeveralPools(t *testing.T) {
	s, y := newSite("9-20"), newSite("9-20")
	r := newReplica(t, s.pool, y.pool)
	sites := []site{s, y}
	old, had, next := make([]Request, 2), make([]netip.Addr, 2), make([]<-chan outcome, 2)
	for i, on := range sites {
		name := fmt.Sprint("racks-old-", i)
		terms.set(name, s.app())
		p := newPod(t, name, on.host, r)
		old[i] = on.of(p, name)
		had[i] = r.one(old[i])
		r.ends(p, time.Minute)
	}
	for n, i := range []int{1, 0} {
		name := fmt.Sprint("racks-new-", i)
		terms.set(name, s.app())
		next[i] = r.adding(t.Context(), sites[i].of(newPod(t, name, sites[i].host, r), name))
		r.waiting(n + 1)
	}
	for i := range sites {
		r.del(del(old[i]))
		if o := <-next[i]; o.err != nil || !slices.Equal(o.addrs, had[i:i+1]) {
			t.Errorf("%v, %v; want %s", o.addrs, o.err, had[i])
		}
	}
}

// A pod that was deleted by force has gone before its DEL comes: its address goes to the next pod all the same.
func TestNextPodAfterOneDeletedByForce(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	old := r.appPod(s, "force-old")
	a := r.one(s.of(old, old.Name))
	p := r.appPod(s, "force-new")
	removePod(t, old)
	controlplane.Until(t, "the cache knows that the pod is gone", func() bool {
		return apierrors.IsNotFound(r.cached.Get(t.Context(), client.ObjectKeyFromObject(old), &corev1.Pod{}))
	})
	next := r.adding(t.Context(), s.of(p, p.Name))
	r.waiting(1)
	r.del(del(s.of(old, old.Name)))
	if o := <-next; o.err != nil || !slices.Equal(o.addrs, []netip.Addr{a}) {
		t.Errorf("%v, %v; want %s", o.addrs, o.err, a)
	}
}

// A request does not wait longer than its own time allows, nor for a pod that should have ended, nor once its container
// has gone.
func TestWaitForAPodEnds(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	old := r.appPod(s, "late-old")
	a := r.one(s.of(old, old.Name))
	r.ends(old, 4*time.Second)
	next := s.of(r.appPod(s, "late-new"), "late-new")
	short, cancel := context.WithTimeout(t.Context(), waitSpare+300*time.Millisecond)
	defer cancel()
	_, err := r.Allocate(short, next)
	refused(t, err, ipam.ReasonClaimConflict, old.Name, "was deleted")
	if short.Err() != nil {
		t.Error("the answer came after the client's deadline")
	}

	gone := s.of(r.appPod(s, "late-gone"), "late-gone")
	deleted := r.adding(t.Context(), gone)
	r.waiting(1)
	r.del(del(gone))
	refused(t, (<-deleted).err, ipam.ReasonContainerDeleted)

	if b := r.one(next); a == b { // it does not end
		t.Errorf("%s goes to %s, while %s has it", a, next.PodName, old.Name)
	}
	if len(r.index.Unknown("")) != 0 || len(s.held(t)) != 2 {
		t.Errorf("held: %v", s.held(t))
	}
}

// Only requests that would take a new address for an app wait, and only for pods whose address they could have.
func TestWhoWaitsForNobody(t *testing.T) {
	s, y := newSite("9-20"), newSite("9-20")
	r := newReplica(t, s.pool, y.pool)
	kept := r.appPod(s, "nobody-kept")
	a := r.one(s.of(kept, kept.Name))
	old := r.appPod(s, "nobody-old")
	r.one(s.of(old, old.Name))
	r.del(del(s.of(kept, kept.Name)))
	r.ends(old, time.Minute)
	if got := r.one(s.of(r.appPod(s, "nobody-first"), "nobody-first")); got != a {
		t.Errorf("got %s, and %s was kept", got, a)
	}
	for name, of := range map[string]Constraints{
		"nobody-says-nothing": {},
		"nobody-keyed":        s.keyed("default/nobody-keyed"),
		"nobody-other-claim":  y.app(),
		"nobody-with-its-pod": {Retention: lease.Retention{Claim: s.app().Claim}},
	} {
		p := newPod(t, name, s.host, r)
		terms.set(name, of)
		r.one(s.of(p, name))
	}
	elsewhere := newPod(t, "nobody-elsewhere", y.host, r)
	terms.set(elsewhere.Name, s.app())
	r.one(y.of(elsewhere, elsewhere.Name))
	asks := s.of(r.appPod(s, "nobody-asks"), "nobody-asks")
	free := 9
	for held := s.held(t); held[s.addr(free)] != ""; free++ {
	}
	asks.Addrs = []netip.Addr{s.addr(free)}
	if got := r.one(asks); got != s.addr(free) {
		t.Errorf("got %s", got)
	}
	second := s.of(old, old.Name) // the pod that ends asks for another interface
	second.IfName = "net1"
	r.one(second)
	r.waiting(0)
}

// A pod is waited for as long as its grace period lasts, within bounds.
func TestEndsBy(t *testing.T) {
	deleted := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for grace, want := range map[time.Duration]time.Duration{
		0: terminatingSlack, 30 * time.Second: 35 * time.Second, time.Hour: terminatingMost + terminatingSlack,
	} {
		if got := endsBy(workload.Pod{DeletedAt: deleted, EndsBy: deleted.Add(grace)}).Sub(deleted); got != want {
			t.Errorf("grace %s: %s, want %s", grace, got, want)
		}
	}
}

// A client that does not tell its time may give up after ten seconds: it has an answer before that.
func TestPatience(t *testing.T) {
	for what, test := range map[string]struct{ told, want time.Duration }{
		"not told":         {0, 8 * time.Second},
		"as long as it is": {MaxRequestTime, 8 * time.Second},
		"ten seconds":      {10 * time.Second, 8 * time.Second},
		"shorter":          {5 * time.Second, 3 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // where no time passes
				ctx := t.Context()
				if test.told > 0 {
					told, cancel := context.WithTimeout(ctx, test.told)
					defer cancel()
					ctx = told
				}
				if got := time.Until(waitDeadline(ctx)); got != test.want {
					t.Errorf("it waits %s, want %s", got, test.want)
				}
			})
		})
	}
}
