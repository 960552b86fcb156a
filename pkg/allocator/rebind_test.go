package allocator

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// Rules 2 and 6: a new container of the same pod keeps the address, by one write. What the old container
// still has to say changes nothing.
func TestNewContainerKeepsTheAddress(t *testing.T) {
	for what, told := range map[string]bool{"UID told": true, "UID not told": false} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9-12")
			r := newReplica(t, s.pool)
			p := newPod(t, fmt.Sprintf("keeps-%v", told), s.host, r)
			one, two := s.of(p, "keeps-1-"+p.Name), s.of(p, "keeps-2-"+p.Name)
			reads := 1 // that the pod is still the same
			if told {
				one.PodUID, two.PodUID, reads = string(p.UID), string(p.UID), 0
			}
			a := r.one(one)
			r.tap.Forget()
			if got := r.one(two); got != a {
				t.Fatalf("got %s, want %s", got, a)
			}
			r.cost("the new container's ADD", 1, reads)
			if l := r.lease(a); l.ContainerID != two.ContainerID || !slices.Equal(l.Superseded, []string{one.ContainerID}) {
				t.Errorf("stored: %+v", l)
			}
			r.tap.Forget()
			if got := r.del(del(one)); len(got) != 0 {
				t.Errorf("the old container's DEL released %v", got)
			}
			_, err := r.Allocate(t.Context(), one)
			refused(t, err, ipam.ReasonContainerSuperseded)
			r.cost("the old container's DEL and ADD", 0, 0)
			if got := r.one(two); got != a {
				t.Errorf("got %s, want %s", got, a)
			}
			if got := r.del(del(two)); !slices.Equal(got, []netip.Addr{a}) {
				t.Errorf("released %v, want %s", got, a)
			}
		})
	}
}

// Rule 6: a late ADD of a sandbox that a newer one replaced is refused, whether it is remembered by its
// ID or began before the newer one.
func TestLateAddOfAReplacedContainer(t *testing.T) {
	lately := ago()
	x := newSite("9-12")
	r := newReplica(t, x.pool)
	p := newPod(t, "replaced", x.host, r)
	at := func(container string, s int) Request {
		request := x.of(p, container)
		request.StartedAt = lately(s)
		return request
	}
	a := r.one(at("replaced-1", 1))
	r.one(at("replaced-2", 2))
	r.tap.Forget()
	for what, late := range map[string]Request{
		"remembered":            at("replaced-1", 1),
		"remembered, as new":    at("replaced-1", 9),
		"never seen, but older": at("replaced-0", 1),
	} {
		_, err := r.Allocate(t.Context(), late)
		t.Log(what)
		refused(t, err, ipam.ReasonContainerSuperseded)
	}
	r.cost("late ADDs", 0, 1) // one that is not remembered may have the address since
	if l := r.lease(a); l.ContainerID != "replaced-2" || len(x.held(t)) != 1 {
		t.Errorf("stored: %+v, held: %v", l, x.held(t))
	}
}

// The container that has the address is not refused by a replica that knows only of the one before, whose request was
// served by another one with a clock that is ahead.
func TestRepeatedAddAtAReplicaThatLagsBehind(t *testing.T) {
	lately := ago()
	x := newSite("9-12")
	one, two := newReplica(t, x.pool), newReplica(t, x.pool)
	p := newPod(t, "lags", x.host, one, two)
	at := func(container string, s int) Request {
		request := x.of(p, container)
		request.StartedAt = lately(s)
		return request
	}
	a := one.one(at("lags-1", 5))
	two.picture(x, map[netip.Addr]string{a: "lags-1"})
	two.watch.Shut()
	one.one(at("lags-2", 6))
	two.tap.Forget()
	done := two.adding(t.Context(), at("lags-2", 4))
	controlplane.Until(t, "it has decided, or looked", func() bool { return len(done) > 0 || two.tap.Count(reads) > 0 })
	two.watch.Open()
	if got := <-done; got.err != nil || !slices.Equal(got.addrs, []netip.Addr{a}) {
		t.Errorf("container lags-2 has %s and is told %v, %v", a, got.addrs, got.err)
	}
}

// Rule 6: a lease remembers its last four containers.
func TestReplacedContainersAreBounded(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	p := newPod(t, "bounded", s.host, r)
	var a netip.Addr
	for n := range 7 {
		a = r.one(s.of(p, fmt.Sprintf("bounded-%d", n)))
	}
	if diff := cmp.Diff([]string{"bounded-2", "bounded-3", "bounded-4", "bounded-5"}, r.lease(a).Superseded); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if held := s.held(t); len(held) != 1 {
		t.Errorf("held: %v", held)
	}
}

// Promise 3: a pod of the same name and another UID has its own address. The late DEL of the old pod's
// container frees the old one alone.
func TestSameNameAnotherPod(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	old := newPod(t, "stateful-0", s.host, r)
	a := r.one(s.of(old, "stateful-old"))
	removePod(t, old)
	anew := newPod(t, "stateful-0", s.host, r)
	b := r.one(s.of(anew, "stateful-new"))
	if a == b {
		t.Fatalf("both have %s while the old one was not released", a)
	}
	if got := r.del(ReleaseRequest{ContainerID: "stateful-old", PodUID: string(old.UID)}); !slices.Equal(got,
		[]netip.Addr{a}) {
		t.Errorf("released %v, want %s", got, a)
	}
	if held := s.held(t); len(held) != 1 || held[b] != "stateful-new" {
		t.Errorf("held: %v, want %s", held, b)
	}
	removePod(t, anew)
}

// The cache still shows a pod that was replaced by another of its name on the same host. The new pod does
// not get the old one's address, which may still be on the wire.
func TestCacheShowsTheReplacedPod(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	old := newPod(t, "stale-0", s.host, r)
	a := r.one(s.of(old, "stale-old"))
	r.podsWatch.Shut()
	defer r.podsWatch.Open()
	removePod(t, old)
	anew := newPod(t, "stale-0", s.host)
	b := r.one(s.of(anew, "stale-new"))
	if a == b {
		t.Fatalf("the new pod got %s, which the old one still has", a)
	}
	if l := r.lease(b); l.PodUID != string(anew.UID) {
		t.Errorf("stored for UID %s, want %s", l.PodUID, anew.UID)
	}
	if l := r.lease(a); l.ContainerID != "stale-old" || l.PodUID != string(old.UID) {
		t.Errorf("the old pod's lease is now %+v", l)
	}
}

// A pod was deleted by force and replaced on the same host, its container still runs. A replica that has seen neither
// takes the new pod's container for a newer one of the old pod: that one's address stays until its DEL.
func TestReplacedPodAtAReplicaThatLagsBehind(t *testing.T) {
	s := newSite("9-12")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	old := newPod(t, "forced-0", s.host, one, two)
	two.watch.Shut()
	two.podsWatch.Shut()
	a := one.one(s.of(old, "forced-old"))
	removePod(t, old)
	anew := newPod(t, "forced-0", s.host, one)
	two.index.MarkUnknown(a, 0, "nobody", two.leases.Now()) // else its write would tell
	answer := two.adding(t.Context(), s.of(anew, "forced-new"))
	controlplane.Until(t, "both are stored", func() bool { return len(s.held(t)) == 2 })
	two.watch.Open()
	out := <-answer
	if out.err != nil {
		t.Fatal(out.err)
	}
	two.podsWatch.Open()
	both := s.held(t)
	for _, r := range []*replica{one, two} {
		r.picture(s, both)
		r.releaseDuplicates(t.Context())
	}
	if held := s.held(t); held[a] != "forced-old" || len(held) != 2 {
		t.Errorf("held: %v, want %s by forced-old beside the address of forced-new", held, a)
	}
	if l := one.lease(out.addrs[0]); l.PodUID != string(old.UID) {
		t.Fatalf("stored for UID %s: this test proves nothing", l.PodUID)
	}
}

// A container was served under its pod's UID. A replica whose cache still has the pod before takes the container, which
// names no UID, for one of that, and finds that one's container newer, as by clocks that are a second off: both keep
// what they have.
func TestServedContainerAtAReplicaThatLagsBehind(t *testing.T) {
	s := newSite("9-12")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	old := newPod(t, "served-0", s.host, one, two)
	earlier, later := s.of(old, "served-old"), time.Now().Add(-time.Minute).UTC()
	earlier.PodUID, earlier.StartedAt = string(old.UID), later.Add(time.Second)
	a := one.one(earlier)
	two.podsWatch.Shut()
	removePod(t, old)
	anew := newPod(t, "served-0", s.host, one)
	request := s.of(anew, "served-new")
	request.StartedAt = later
	b := one.one(request)
	want := map[netip.Addr]string{a: "served-old", b: "served-new"}
	two.picture(s, want)
	if got := two.one(request); got != b {
		t.Errorf("got %s, want %s", got, b)
	}
	two.podsWatch.Open()
	if diff := cmp.Diff(want, s.held(t), cmp.Comparer(func(x, y netip.Addr) bool { return x == y })); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
}

// A lease that was written with the UID of a replaced pod, on the word of the cache, is corrected by the
// next request of its container.
func TestWrongUIDIsCorrected(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	old := newPod(t, "wrong-0", s.host, r)
	r.podsWatch.Shut()
	removePod(t, old)
	anew := newPod(t, "wrong-0", s.host)
	request := s.of(anew, "wrong-c")
	a := r.one(request)
	if l := r.lease(a); l.PodUID != string(old.UID) {
		t.Fatalf("stored for UID %s: this test proves nothing", l.PodUID)
	}
	r.podsWatch.Open()
	r.sees(anew)
	r.tap.Forget()
	if got := r.one(request); got != a {
		t.Errorf("got %s, want %s", got, a)
	}
	r.cost("the correction", 1, 1)
	if l := r.lease(a); l.PodUID != string(anew.UID) || l.ContainerID != "wrong-c" || len(l.Superseded) != 0 {
		t.Errorf("stored: %+v", l)
	}
	r.tap.Forget()
	r.one(request)
	r.cost("afterwards", 0, 1)
}

// The other way round: a cache that fell behind does not spoil a lease that has the right UID, and a pod
// that has gone is refused as such.
func TestRightUIDIsKept(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	old := newPod(t, "right-0", s.host, r)
	r.podsWatch.Shut()
	defer r.podsWatch.Open()
	removePod(t, old)
	anew := newPod(t, "right-0", s.host)
	request := s.of(anew, "right-c")
	request.PodUID = string(anew.UID)
	a := r.one(request)
	request.PodUID = ""
	r.tap.Forget()
	if got := r.one(request); got != a || r.lease(a).PodUID != string(anew.UID) {
		t.Errorf("got %s for UID %s", got, r.lease(a).PodUID)
	}
	if n := r.tap.Count(writes); n != 0 {
		t.Errorf("%d writes, want none", n)
	}
	removePod(t, anew)
	_, err := r.Allocate(t.Context(), request)
	refused(t, err, ipam.ReasonPodNotFound)
}

// Two containers of one pod at once have one address in the end, the newer's.
func TestTwoContainersAtOnce(t *testing.T) {
	lately := ago()
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	for n := range 10 {
		p := newPod(t, fmt.Sprintf("twins-%d", n), s.host, r)
		older, newer := s.of(p, p.Name+"-older"), s.of(p, p.Name+"-newer")
		older.StartedAt, newer.StartedAt = lately(1), lately(2)
		first, second := r.adding(t.Context(), older), r.adding(t.Context(), newer)
		if got := <-second; got.err != nil {
			t.Fatal(got.err)
		}
		if got := <-first; got.err != nil {
			refused(t, got.err, ipam.ReasonContainerSuperseded)
		}
		held := s.held(t)
		if a := r.one(newer); len(held) != 1 || held[a] != newer.ContainerID {
			t.Errorf("held: %v, want %s for the newer", held, a)
		}
		_, err := r.Allocate(t.Context(), older)
		refused(t, err, ipam.ReasonContainerSuperseded)
		if got := r.del(del(older)); len(got) != 0 {
			t.Errorf("the older released %v", got)
		}
		r.del(del(newer))
	}
}

// Rule 7: an address whose object somebody deletes stays with its holder, is not moved to another
// container and not given to anybody else before it is gone.
func TestObjectIsBeingDeleted(t *testing.T) {
	s := newSite("9")
	r := newReplica(t, s.pool)
	p := newPod(t, "deleting", s.host, r)
	request := s.of(p, "deleting-1")
	a := r.one(request)
	o := &v1.BCSNetIP{ObjectMeta: metav1.ObjectMeta{Name: ipaddr.ObjectName(a)}}
	c := cluster.AdminFor(t)
	if err := v1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), o, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	controlplane.Until(t, "the index knows", func() bool { l, _ := r.index.Leases.Get(a); return l.Deleting })
	if got := r.one(request); got != a {
		t.Errorf("got %s, want %s", got, a)
	}
	_, err := r.Allocate(t.Context(), s.of(p, "deleting-2"))
	refused(t, err, ipam.ReasonAddressInUse)
	_, err = r.Allocate(t.Context(), s.vm("else"))
	refused(t, err, ipam.ReasonPoolExhausted)
	r.del(del(request))
	controlplane.Until(t, "the object is gone", func() bool { _, ok := r.index.Leases.Get(a); return !ok })
	if got := r.one(s.vm("else")); got != a {
		t.Errorf("got %s, want %s", got, a)
	}
}
