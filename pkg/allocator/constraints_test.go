package allocator

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go4.org/netipx"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// keyed are the terms of one pod of a claim of its own site, app those of any of its pods.
func (s site) keyed(key string) Constraints {
	return Constraints{Retention: lease.Retention{Claim: "default/" + s.pool.Name, PodPrimaryKey: key, Fixed: true}}
}

func (s site) app() Constraints { return s.keyed("") }

func (s site) set(t testing.TB, from, to int) *netipx.IPSet {
	t.Helper()
	var b netipx.IPSetBuilder
	b.AddRange(netipx.IPRangeFrom(s.addr(from), s.addr(to)))
	set, err := b.IPSet()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// again is a pod of the same name as one that goes.
func again(t *testing.T, p *corev1.Pod, s site, rs ...*replica) *corev1.Pod {
	t.Helper()
	removePod(t, p)
	controlplane.Until(t, "the pod is gone", func() bool {
		return client.IgnoreNotFound(cluster.AdminFor(t).Get(t.Context(), client.ObjectKeyFromObject(p),
			&corev1.Pod{})) == nil
	})
	return newPod(t, p.Name, s.host, rs...)
}

// A pod of a key gets its address again after its DEL, at the price of any other: one write each.
func TestKeptForAPod(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	p := newPod(t, "kept-0", s.host, r)
	terms.set(p.Name, s.keyed("default/kept-0"))
	a := r.one(s.of(p, "kept-c1"))
	for n := range 3 {
		r.tap.Forget()
		if got := r.del(del(s.of(p, "kept-c"+string(rune('1'+n))))); !slices.Equal(got, []netip.Addr{a}) {
			t.Fatalf("released %v", got)
		}
		r.cost("a release", 1, 0)
		if l := r.lease(a); l.State != lease.Reserved || l.PodName != p.Name || l.PodUID != "" || l.ContainerID != "" ||
			!l.HeldFinalizer {
			t.Fatalf("after the DEL: %+v", l)
		}
		p = again(t, p, s, r)
		r.tap.Forget()
		if got := r.one(s.of(p, "kept-c"+string(rune('2'+n)))); got != a {
			t.Fatalf("got %s, want %s", got, a)
		}
		r.cost("an allocation", 1, 0)
	}
}

// Pods of an app get the address that was given up last.
func TestKeptForAnApp(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	var had []netip.Addr
	for _, name := range []string{"app-a", "app-b", "app-c"} {
		terms.set(name, s.app())
		had = append(had, r.one(s.of(newPod(t, name, s.host, r), name)))
	}
	for _, name := range []string{"app-b", "app-a", "app-c"} {
		r.del(ReleaseRequest{ContainerID: name})
	}
	for i, name := range []string{"app-d", "app-e", "app-f"} {
		terms.set(name, s.app())
		want := []netip.Addr{had[2], had[0], had[1]}[i]
		if got := r.one(s.of(newPod(t, name, s.host, r), name)); got != want {
			t.Errorf("%s got %s, want %s", name, got, want)
		}
	}
	terms.set("app-g", func() Constraints { t := s.app(); t.Room = 3; return t }())
	_, err := r.Allocate(t.Context(), s.of(newPod(t, "app-g", s.host, r), "app-g"))
	refused(t, err, ipam.ReasonClaimFull, "3 of 3")
}

// The next pod of a name gets the address although no DEL came for the one before, once that is gone; late DELs and
// ADDs of the earlier one change nothing.
func TestSuccessor(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	p := newPod(t, "next-0", s.host, r)
	terms.set(p.Name, s.keyed("default/next-0"))
	old := s.of(p, "next-c1")
	old.PodUID = string(p.UID)
	a := r.one(old)
	p = again(t, p, s, r)
	if _, next, err := r.Propose(t.Context(), s.of(p, "next-c2")); err != nil || len(next) != 1 || next[0].Addr != a ||
		next[0].PodUID != string(p.UID) {
		t.Fatalf("proposed %v, %v", next, err)
	}
	r.tap.Forget()
	if got := r.one(s.of(p, "next-c2")); got != a {
		t.Fatalf("got %s, want %s", got, a)
	}
	r.cost("a succession", 1, 1)
	r.del(del(old))
	if l := r.lease(a); l.ContainerID != "next-c2" || l.PodUID != string(p.UID) || l.State != lease.Active {
		t.Errorf("after a late DEL: %+v", l)
	}
	_, err := r.Allocate(t.Context(), old)
	if err == nil {
		t.Error("a late ADD of the earlier pod got an address")
	}
	if l := r.lease(a); l.ContainerID != "next-c2" {
		t.Errorf("after a late ADD: %+v", l)
	}
}

// Of several addresses of an earlier pod the next one gets all, also where one of the writes fails.
func TestSuccessorOfSeveral(t *testing.T) {
	for name, fault := range map[string]intercept.Hook{
		"refused": intercept.Answer(400, metav1.StatusReasonBadRequest, 0), "in doubt": intercept.Fail(errReset), "somebody was faster": intercept.Answer(409, metav1.StatusReasonConflict, 0),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite("9-20")
			r := newReplica(t, s.pool)
			p := newPod(t, "several-"+strings.ReplaceAll(name, " ", "-"), s.host, r)
			two := s.keyed("default/" + p.Name)
			two.Sets = []*netipx.IPSet{s.set(t, 9, 12), s.set(t, 13, 16)}
			terms.set(p.Name, two)
			had := r.add(s.of(p, name+"1"))
			p = again(t, p, s, r)
			r.tap.Forget()
			mend := r.tap.On(func(q *http.Request) bool { return writes(q) && r.tap.Count(writes) == 2 }, fault)
			got, err := r.Allocate(t.Context(), s.of(p, name+"2"))
			mend()
			if err == nil && !slices.Equal(addrs(got), had) {
				t.Errorf("got %v, the earlier pod had %v", addrs(got), had)
			}
			if got := r.add(s.of(p, name+"2")); !slices.Equal(got, had) {
				t.Errorf("then got %v, the earlier pod had %v", got, had)
			}
			for _, a := range had {
				if l := r.lease(a); l.PodUID != string(p.UID) || l.ContainerID != name+"2" {
					t.Errorf("%s: %+v", a, l)
				}
			}
		})
	}
}

// Two pods of one key: the second waits until the first is gone, and is told so.
func TestTwoPodsOfOneKey(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	first, second := newPod(t, "twin-a", s.host, r), newPod(t, "twin-b", s.host, r)
	for _, p := range []*corev1.Pod{first, second} {
		terms.set(p.Name, s.keyed("the-key"))
	}
	a := r.one(s.of(first, "twin-c1"))
	_, err := r.Allocate(t.Context(), s.of(second, "twin-c2"))
	refused(t, err, ipam.ReasonClaimConflict, a.String(), "default/twin-a", "the-key")
	_, _, err = r.Propose(t.Context(), s.of(second, "twin-c2"))
	refused(t, err, ipam.ReasonClaimConflict, a.String(), "default/twin-a", "the-key")
	removePod(t, first)
	if got := r.one(s.of(second, "twin-c2")); got != a {
		t.Errorf("got %s, want %s", got, a)
	}
}

// A lease with another UID than the pod of its name has may be that pod's, bound by a replica whose cache was behind:
// the next pod of the key waits.
func TestNextPodOfAKeyAndAnOlderUID(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	first, second := newPod(t, "older-a", s.host, r), newPod(t, "older-b", s.host, r)
	for _, p := range []*corev1.Pod{first, second} {
		terms.set(p.Name, s.keyed("older-key"))
	}
	a := r.one(s.of(first, "older-c1"))
	l := r.lease(a)
	l.PodUID, l.UIDNamed = "older-uid", false
	stored, err := r.leases.Write(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	controlplane.Until(t, "the index has it", func() bool { return r.index.Feed.Seen() >= stored.Version })
	_, err = r.Allocate(t.Context(), s.of(second, "older-c2"))
	refused(t, err, ipam.ReasonClaimConflict, a.String(), "default/older-a")
	if now := r.lease(a); now.ContainerID != "older-c1" {
		t.Errorf("the lease: %+v", now)
	}
}

// A replica whose cache is behind stores a request that names no UID by that of the pod before. A late ADD of an older
// container of the pod, at a replica that knows the pod, does not succeed to it: the address stays with the container
// that runs.
func TestLateAddAndAnOlderUID(t *testing.T) {
	for what, told := range map[string]bool{"the UID is named": true, "the UID is not named": false} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9-20")
			behind, right := newReplica(t, s.pool), newReplica(t, s.pool)
			at := ago()
			p := newPod(t, fmt.Sprintf("older-uid-%v-0", told), s.host, behind, right)
			terms.set(p.Name, s.keyed("default/"+p.Name))
			before := string(p.UID)
			behind.podsWatch.Shut()
			p = again(t, p, s, right)

			next := s.of(p, p.Name+"-c2")
			next.StartedAt = at(5)
			a := behind.one(next)
			if l := behind.lease(a); l.PodUID != before {
				t.Fatalf("bound to UID %s, want the pod before, %s", l.PodUID, before)
			}
			right.picture(s, map[netip.Addr]string{a: next.ContainerID})
			late := s.of(p, p.Name+"-c1")
			if late.StartedAt = at(4); told {
				late.PodUID = string(p.UID)
			}
			_, err := right.Allocate(t.Context(), late)
			refused(t, err, ipam.ReasonContainerSuperseded, a.String(), next.ContainerID)
			if l := right.lease(a); l.ContainerID != next.ContainerID || l.State != lease.Active {
				t.Errorf("after the late ADD: %+v", l)
			}

			newer := s.of(p, p.Name+"-c3")
			newer.StartedAt = at(6)
			if got := right.one(newer); got != a {
				t.Errorf("the newer container has %s, want %s", got, a)
			}
		})
	}
}

// The same where the late one is not late: it has the address since, by a replica that knows the pod and whose clock is
// ahead. A replica whose watch is behind reads the lease before it refuses.
func TestRepeatedAddAndAnOlderUID(t *testing.T) {
	x := newSite("9-20")
	behind, right, lagging := newReplica(t, x.pool), newReplica(t, x.pool), newReplica(t, x.pool)
	at := ago()
	p := newPod(t, "older-uid-again-0", x.host, behind, right, lagging)
	terms.set(p.Name, x.keyed("default/"+p.Name))
	behind.podsWatch.Shut()
	p = again(t, p, x, right, lagging)
	of := func(container string, s int) Request {
		request := x.of(p, container)
		request.StartedAt, request.PodUID = at(s), string(p.UID)
		return request
	}
	before := x.of(p, "older-uid-c1")
	before.StartedAt = at(5)
	a := behind.one(before)
	right.picture(x, map[netip.Addr]string{a: before.ContainerID})
	lagging.picture(x, map[netip.Addr]string{a: before.ContainerID})
	lagging.watch.Shut()
	right.one(of("older-uid-c2", 6))
	lagging.tap.Forget()
	done := lagging.adding(t.Context(), of("older-uid-c2", 4))
	controlplane.Until(t, "it has decided, or looked",
		func() bool { return len(done) > 0 || lagging.tap.Count(reads) > 0 })
	lagging.watch.Open()
	if got := <-done; got.err != nil || !slices.Equal(got.addrs, []netip.Addr{a}) {
		t.Errorf("container older-uid-c2 has %s and is told %v, %v", a, got.addrs, got.err)
	}
}

// The next pod of a key that is on a host which the pool does not serve does not take the address over.
func TestSuccessorOnAnotherHost(t *testing.T) {
	s, other := newSite("9-20"), newSite("9-20")
	r := newReplica(t, s.pool, other.pool)
	p := newPod(t, "far-0", s.host, r)
	terms.set(p.Name, s.keyed("default/far-0"))
	a := r.one(s.of(p, "far-c1"))
	p = again(t, p, other, r)
	_, err := r.Allocate(t.Context(), other.of(p, "far-c2"))
	refused(t, err, ipam.ReasonClaimConflict, a.String(), "may not draw from")
	if l := r.lease(a); l.ContainerID != "far-c1" {
		t.Errorf("the lease: %+v", l)
	}
}

// An address that its pool has given up is neither taken over nor waited for: the pod gets another one.
func TestAddressThatLeftItsPool(t *testing.T) {
	for name, released := range map[string]bool{"kept": true, "held by an earlier pod": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite("9-20")
			r := newReplica(t, s.pool)
			p := newPod(t, fmt.Sprintf("left-%v-0", released), s.host, r)
			terms.set(p.Name, s.keyed("default/"+p.Name))
			first := s.of(p, p.Name+"-c1")
			a := r.one(first)
			if released {
				r.del(del(first))
			}
			p = again(t, p, s, r)
			shrunk := s.pool.DeepCopy()
			shrunk.Spec.ExcludeIPs = []string{a.String()}
			r.index.Pools.SetPool(poolOf(t, shrunk))
			r.tap.Forget()
			if got := r.one(s.of(p, p.Name+"-c2")); got == a {
				t.Errorf("got %s", got)
			}
			r.cost("an allocation", 1, 0)
		})
	}
}

// A replica that has not seen the release yet takes another address, finds the kept one before it answers, and gives
// the other back.
func TestKeptBehindTheWatch(t *testing.T) {
	s := newSite("9-20")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	p := newPod(t, "behind-0", s.host, one, two)
	terms.set(p.Name, s.keyed("default/behind-0"))
	two.watch.Shut()
	a := one.one(s.of(p, "behind-c1"))
	one.del(del(s.of(p, "behind-c1")))
	p = again(t, p, s, one, two)
	answer := two.adding(t.Context(), s.of(p, "behind-c2"))
	controlplane.Until(t, "another address is taken", func() bool { return len(s.held(t)) == 1 })
	two.watch.Open()
	if got := <-answer; got.err != nil || !slices.Equal(got.addrs, []netip.Addr{a}) {
		t.Fatalf("got %v, %v; want %s", got.addrs, got.err, a)
	}
	if held := s.held(t); len(held) != 1 || held[a] != "behind-c2" {
		t.Errorf("held: %v, want only %s", held, a)
	}
	if all := two.index.Leases.ByClaim(s.app().Claim); len(all) != 1 {
		t.Errorf("of the claim: %v", all)
	}
}

// One address of each range, all or none, and the same ones when the pod comes again.
func TestSeveralRanges(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	p := newPod(t, "ranges-0", s.host, r)
	both := s.keyed("default/ranges-0")
	both.Sets = []*netipx.IPSet{s.set(t, 12, 13), s.set(t, 12, 12), s.set(t, 12, 12)}
	terms.set(p.Name, both)
	_, err := r.Allocate(t.Context(), s.of(p, "ranges-c0"))
	refused(t, err, ipam.ReasonPoolExhausted)
	if held := s.held(t); len(held) != 0 {
		t.Fatalf("held: %v", held)
	}
	both.Sets[2] = s.set(t, 18, 20)
	terms.set(p.Name, both)
	want := []netip.Addr{s.addr(12), s.addr(13), s.addr(18)}
	for n := range 2 {
		request := s.of(p, "ranges-c1"+string(rune('0'+n)))
		if got := r.add(request); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if got := r.add(request); !slices.Equal(got, want) {
			t.Fatalf("again: got %v, want %v", got, want)
		}
		r.del(del(request))
		p = again(t, p, s, r)
	}
}

// A request may not ask for what its terms exclude; their gateway goes into the answer, and new terms into the lease of
// the next container.
func TestTermsOfARequest(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	p := newPod(t, "terms-0", s.host, r)
	first := r.one(s.of(p, "terms-c1"))
	on := s.keyed("default/terms-0")
	on.Gateway = s.addr(99)
	terms.set(p.Name, on)
	newer := s.of(p, "terms-c2")
	newer.StartedAt = time.Now()
	got, err := r.Allocate(t.Context(), newer)
	if err != nil || got[0].Addr != first || got[0].Settings.Gateway != s.addr(99) {
		t.Fatalf("%v, %v", got, err)
	}
	if l := r.lease(first); l.Retention != on.Retention || l.Gateway == s.addr(99) {
		t.Errorf("lease: %+v", l)
	}
	q := newPod(t, "terms-1", s.host, r)
	on.Sets, on.Pools = []*netipx.IPSet{s.set(t, 15, 15)}, []string{s.pool.Name}
	on.PodPrimaryKey = "default/terms-1"
	terms.set(q.Name, on)
	wrong := s.of(q, "terms-c3")
	wrong.Addrs = []netip.Addr{s.addr(16)}
	_, err = r.Allocate(t.Context(), wrong)
	refused(t, err, ipam.ReasonClaimConflict, s.addr(16).String(), s.addr(15).String())
	wrong.Addrs, wrong.Pool = nil, "another"
	_, err = r.Allocate(t.Context(), wrong)
	refused(t, err, ipam.ReasonClaimConflict, "another", s.pool.Name)

	far := newPod(t, "terms-2", s.host, r)
	terms.set(far.Name, Constraints{Gateway: netip.MustParseAddr("192.0.2.1")})
	for range 2 {
		_, err = r.Allocate(t.Context(), s.of(far, "terms-c4"))
		refused(t, err, ipam.ReasonClaimConflict, "192.0.2.1", s.pool.Name)
	}
	if n := len(s.held(t)); n != 1 {
		t.Errorf("%d addresses are held, want the first one", n)
	}
}

// What a pod holds stays its own where its claim or annotations have become wrong since: the same request gets the same
// answer, and the pod's next container the same address on the terms that it had. Only more is refused.
func TestHeldWithTermsThatBecameWrong(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	wrong := ipam.Refuse(ipam.ReasonClaimConflict, "claim default/gone is being deleted")
	p := newPod(t, "unfit-0", s.host, r)
	terms.set(p.Name, s.keyed("default/unfit-0"))
	request := s.of(p, "wrong-c1")
	a := r.one(request)
	terms.refuse(p.Name, wrong)
	r.tap.Forget()
	if got := r.one(request); got != a {
		t.Fatalf("got %s, want %s", got, a)
	}
	r.cost("the same again", 0, 1)
	if held, free, err := r.Propose(t.Context(), request); err != nil || len(held) != 1 || held[0].Addr != a ||
		len(free) != 0 {
		t.Errorf("proposed %v, %v, %v", held, free, err)
	}
	newer := s.of(p, "wrong-c2")
	newer.StartedAt = time.Now()
	if got := r.one(newer); got != a {
		t.Fatalf("got %s, want %s", got, a)
	}
	if l := r.lease(a); l.ContainerID != "wrong-c2" || l.Retention != s.keyed("default/unfit-0").Retention {
		t.Errorf("lease of the next container: %+v", l)
	}
	other := newer
	other.IfName = "net1"
	_, err := r.Allocate(t.Context(), other)
	refused(t, err, ipam.ReasonClaimConflict, "being deleted")
	r.del(del(newer))
	newer = s.of(p, "wrong-c3")
	_, err = r.Allocate(t.Context(), newer)
	refused(t, err, ipam.ReasonClaimConflict, "being deleted")
	_, _, err = r.Propose(t.Context(), newer)
	refused(t, err, ipam.ReasonClaimConflict, "being deleted")
	if l := r.lease(a); l.State != lease.Reserved {
		t.Errorf("after the DEL: %+v", l)
	}

	q := newPod(t, "unfit-1", s.host, r)
	request = s.of(q, "wrong-c4")
	request.Pool = s.pool.Name
	b := r.one(request)
	terms.set(q.Name, Constraints{Pools: []string{"another"}})
	if got := r.one(request); got != b {
		t.Errorf("got %s, want %s", got, b)
	}
	request.IfName = "net1"
	_, err = r.Allocate(t.Context(), request)
	refused(t, err, ipam.ReasonClaimConflict, "another", s.pool.Name)
}

// TestTermsFor: an address that somebody has becomes the claim's where that may have it, or has it already.
func TestTermsFor(t *testing.T) {
	var b netipx.IPSetBuilder
	b.Add(netip.MustParseAddr("10.0.0.9"))
	nine, err := b.IPSet()
	if err != nil {
		t.Fatal(err)
	}
	x := index.New()
	for available, p := range map[string]ipam.Pool{
		"10.0.0.0-10.0.0.23": {Name: "net", BlockSize: 29},
		"10.0.0.8/29":        {Name: "net-10-0-0-8-29", Parent: "net", Namespaces: map[string]struct{}{"shop": {}}},
	} {
		spec := ipam.PlanSpec{Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: []string{available}}
		if p.Plan, err = ipam.NewPlan(spec); err != nil {
			t.Fatal(err)
		}
		x.Pools.SetPool(p)
	}
	web := lease.Retention{Claim: "shop/web", Fixed: true}
	has := func(addr, pool, claim string) lease.Lease {
		return lease.Lease{
			Addr: netip.MustParseAddr(addr), State: lease.Active, Params: lease.Params{Pool: pool},
			Retention: lease.Retention{Claim: claim},
		}
	}
	for name, tc := range map[string]struct {
		terms Constraints
		lease lease.Lease
		want  lease.Retention
	}{
		"any address":            {Constraints{Retention: web}, has("10.0.0.10", "a", ""), web},
		"one of its own":         {Constraints{Retention: web, Pools: []string{"a"}, Sets: []*netipx.IPSet{nine}}, has("10.0.0.9", "a", "shop/other"), web},
		"not one of its own":     {Constraints{Retention: web, Sets: []*netipx.IPSet{nine}}, has("10.0.0.10", "a", "shop/other"), lease.Retention{}},
		"of another pool":        {Constraints{Retention: web, Pools: []string{"b"}}, has("10.0.0.9", "a", ""), lease.Retention{}},
		"of a block of its pool": {Constraints{Retention: web, Pools: []string{"net"}}, has("10.0.0.9", "net-10-0-0-8-29", ""), web},
		"its own, and no longer": {Constraints{Retention: web, Pools: []string{"b"}, Sets: []*netipx.IPSet{nine}}, has("10.0.0.10", "a", "shop/web"), web},
		"no claim":               {Constraints{Pools: []string{"b"}}, has("10.0.0.9", "a", "shop/web"), lease.Retention{}},
	} {
		if got := tc.terms.RetentionFor(x.Pools, tc.lease); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// The next pod of a key takes no address over while it is not known whether the store was put back.
func TestNextPodOfAKeyAfterARestore(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	first, second := newPod(t, "heir-a", s.host, r), newPod(t, "heir-b", s.host, r)
	for _, p := range []*corev1.Pod{first, second} {
		terms.set(p.Name, s.keyed("heir-key"))
	}
	a := r.one(s.of(first, "heir-c1"))
	removePod(t, first)
	r.index.Feed.SetComparing(true)
	_, err := r.Allocate(t.Context(), s.of(second, "heir-c2"))
	refused(t, err, ipam.ReasonUnavailable, "put back")
	r.index.Feed.SetComparing(false)
	if got := r.one(s.of(second, "heir-c2")); got != a {
		t.Errorf("got %s, want %s", got, a)
	}
}
