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

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

var compareAddrs = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

// Rules 1, 3 and 4: an allocation whose pod is in the cache is one write and no read, whether the address
// has its object already or gets it by this write.
func TestFirstAllocation(t *testing.T) {
	for what, materialized := range map[string]bool{"update": true, "create": false} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9-12")
			s.pool.Spec.VLAN, s.pool.Spec.MTU = 7, 9000
			r := newReplica(t, s.pool)
			if materialized {
				s.materialize(t, r)
			}
			p := newPod(t, "first-"+what, s.host, r)
			request := s.of(p, "c1-"+what)
			request.StartedAt = ago()(0).UTC()
			r.tap.Forget()
			got, err := r.Allocate(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			r.cost("the first ADD", 1, 0)
			stored := r.lease(got[0].Addr)
			given := lease.Settings{Gateway: s.addr(254), Link: lease.Link{VLAN: 7, MTU: 9000}}
			want := lease.Lease{
				Addr: got[0].Addr, Version: stored.Version, State: lease.Active,
				Params: lease.Params{Pool: s.pool.Name, Bits: 24, Gateway: s.addr(254)},
				Holder: lease.Holder{
					Host: s.host, ContainerID: request.ContainerID, IfName: "eth0", Namespace: "default", PodName: p.Name,
					PodUID: string(p.UID), StartedAt: request.StartedAt, Given: lease.NewGiven(given),
				},
				Updated: stored.Updated, HeldFinalizer: true,
			}
			if diff := cmp.Diff(want, stored, compareAddrs); diff != "" {
				t.Errorf("stored: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff([]Address{{Lease: want, Settings: given}}, got, compareAddrs); diff != "" {
				t.Errorf("answered: -want +got:\n%s", diff)
			}
			if age := time.Since(stored.Updated); age < -2*time.Second || age > time.Minute {
				t.Errorf("updated at %v", stored.Updated)
			}
		})
	}
}

// Rule 1: a pod that the cache does not know is one read of the pod.
func TestFirstAllocationOfAnUnknownPod(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	p := newPod(t, "unknown", netip.MustParseAddr("192.0.2.1"), r) // the cache has it on another host
	r.tap.Forget()
	r.one(s.of(p, "unknown-c"))
	r.cost("an ADD from another host", 1, 1)
}

// Rule 1: who asks for a pod that is not there, or not any more, gets no address.
func TestPodRefused(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	there := newPod(t, "there", s.host, r)
	over := newPod(t, "over", s.host)
	over.Status.Phase = corev1.PodSucceeded
	if err := cluster.AdminFor(t).Status().Update(t.Context(), over); err != nil {
		t.Fatal(err)
	}
	controlplane.Until(t, "the cache knows that it is over", func() bool {
		var p corev1.Pod
		err := r.cached.Get(t.Context(), client.ObjectKeyFromObject(over), &p)
		return err == nil && p.Status.Phase == corev1.PodSucceeded
	})
	for what, test := range map[string]struct {
		change func(*Request)
		want   ipam.Reason
	}{
		"no such pod":    {func(r *Request) { r.PodName = "nobody" }, ipam.ReasonPodNotFound},
		"another's UID":  {func(r *Request) { r.PodUID = "another" }, ipam.ReasonPodReplaced},
		"no such pod's":  {func(r *Request) { r.PodName, r.PodUID = "nobody", "u" }, ipam.ReasonPodNotFound},
		"ended":          {func(r *Request) { r.PodName = over.Name }, ipam.ReasonPodEnded},
		"host unknown":   {func(r *Request) { r.Host = netip.MustParseAddr("192.0.2.77") }, ipam.ReasonHostNotInPool},
		"no such net":    {func(r *Request) { r.Network = "nowhere" }, ipam.ReasonNetworkNotFound},
		"not in a pool":  {func(r *Request) { r.Addrs = []netip.Addr{s.addr(200)} }, ipam.ReasonAddressNotInPool},
		"another's host": {func(r *Request) { r.Host, r.Addrs = netip.MustParseAddr("192.0.2.77"), []netip.Addr{s.addr(9)} }, ipam.ReasonHostNotInPool},
	} {
		t.Run(what, func(t *testing.T) {
			request := s.of(there, "refused-c")
			test.change(&request)
			_, err := r.Allocate(t.Context(), request)
			refused(t, err, test.want)
		})
	}
	if held := s.held(t); len(held) != 0 {
		t.Errorf("held: %v", held)
	}
}

// Rule 2: the same request again is the same answer, for no write and one read.
func TestAddRetried(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	p := newPod(t, "retried", s.host, r)
	for _, withUID := range []bool{false, true} {
		request := s.of(p, "retried-c")
		if withUID {
			request.PodUID = string(p.UID)
		}
		first, err := r.Allocate(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if first[0].Repeated != withUID { // the second round asks for what the first got
			t.Errorf("with UID %t: %+v", withUID, first[0])
		}
		first[0].Repeated = true // which is all that a repetition changes
		r.tap.Forget()
		for range 3 {
			again, err := r.Allocate(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, again, compareAddrs); diff != "" {
				t.Errorf("-first +again:\n%s", diff)
			}
			r.cost("a repeated ADD", 0, 1)
		}
	}
}

// Another interface of the same container has its own address.
func TestInterfacesHaveTheirOwn(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	p := newPod(t, "interfaces", s.host, r)
	eth0, net1 := s.of(p, "interfaces-c"), s.of(p, "interfaces-c")
	net1.IfName = "net1"
	a, b := r.one(eth0), r.one(net1)
	if a == b || r.one(eth0) != a || r.one(net1) != b {
		t.Fatalf("eth0 has %s, net1 has %s", a, b)
	}
	if got := r.del(ReleaseRequest{ContainerID: "interfaces-c", IfName: "net1"}); !slices.Equal(got, []netip.Addr{b}) {
		t.Errorf("released %v, want %s", got, b)
	}
	r.one(net1)
	if got := r.del(ReleaseRequest{ContainerID: "interfaces-c"}); len(got) != 2 {
		t.Errorf("released %v, want both", got)
	}
	if held := s.held(t); len(held) != 0 {
		t.Errorf("held: %v", held)
	}
}

// Rule 3: an address asked for is given if it is free, and refused with who has it if not.
func TestAddressAskedFor(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	first, second := newPod(t, "asked-1", s.host, r), newPod(t, "asked-2", s.host, r)
	ask := func(p *corev1.Pod, n int) Request {
		request := s.of(p, p.Name+"-c")
		request.Addrs = []netip.Addr{s.addr(n)}
		return request
	}
	if got := r.one(ask(first, 11)); got != s.addr(11) {
		t.Fatalf("got %s", got)
	}
	r.tap.Forget()
	if got := r.one(ask(first, 11)); got != s.addr(11) {
		t.Fatalf("got %s", got)
	}
	r.cost("asked again", 0, 1)

	_, err := r.Allocate(t.Context(), ask(second, 11))
	refused(t, err, ipam.ReasonAddressInUse, "default/asked-1")
	r.cost("asked for another's", 0, 0)

	// Rule 2: who holds one and asks for another is told which.
	_, err = r.Allocate(t.Context(), ask(first, 12))
	refused(t, err, ipam.ReasonContainerHoldsOther, s.addr(11).String())
	elsewhere := s.of(first, "asked-1-c")
	elsewhere.Network = "elsewhere"
	_, err = r.Allocate(t.Context(), elsewhere)
	refused(t, err, ipam.ReasonContainerHoldsOther)
	r.cost("asked for something else", 0, 0)
}

// A request in the name of a container that serves another pod is refused, and takes nothing away: not
// from the container's pod, and not from the pod that is named.
func TestContainerOfAnotherPod(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	a, b := newPod(t, "mixed-a", s.host, r), newPod(t, "mixed-b", s.host, r)
	r.one(s.of(a, "mixed-ca"))
	r.one(s.of(b, "mixed-cb"))
	before := s.held(t)
	_, err := r.Allocate(t.Context(), s.of(b, "mixed-ca"))
	refused(t, err, ipam.ReasonContainerHoldsOther)
	owner := Request{Host: s.host, Owner: "vm-mixed", ContainerID: "mixed-ca"}
	_, err = r.Allocate(t.Context(), owner)
	refused(t, err, ipam.ReasonContainerHoldsOther)
	owner.ContainerID = ""
	r.one(owner)
	owner.ContainerID = "mixed-ca"
	_, err = r.Allocate(t.Context(), owner)
	refused(t, err, ipam.ReasonContainerHoldsOther)
	r.del(ReleaseRequest{Owner: "vm-mixed"})
	if diff := cmp.Diff(before, s.held(t), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}

// An owner that is no pod holds, keeps and releases like a pod, with and without a container.
func TestOwner(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	for what, container := range map[string]string{"bare": "", "with container": "owner-c"} {
		t.Run(what, func(t *testing.T) {
			r := r.in(t)
			request := Request{Host: s.host, Owner: "vm " + what, ContainerID: container}
			r.tap.Forget()
			a := r.one(request)
			r.cost("the first ADD", 1, 0)
			for _, c := range []string{container, ""} {
				request.ContainerID = c
				if got := r.one(request); got != a {
					t.Errorf("again with container %q: %s, want %s", c, got, a)
				}
				r.cost(fmt.Sprintf("again with container %q", c), 1, 1) // it is for a later request from now on
			}
			request.StartedAt = r.lease(a).StartedAt
			r.tap.Forget()
			if got := r.one(request); got != a {
				t.Errorf("the same request again: %s, want %s", got, a)
			}
			r.cost("the same request again", 0, 1)
			if l := r.lease(a); l.Owner != request.Owner || l.ContainerID != container || l.PodUID != "" {
				t.Errorf("stored: %+v", l)
			}
			r.tap.Forget()
			if got := r.del(ReleaseRequest{Owner: "vm other"}); len(got) != 0 {
				t.Errorf("another owner released %v", got)
			}
			if got := r.del(ReleaseRequest{Owner: request.Owner}); !slices.Equal(got, []netip.Addr{a}) {
				t.Errorf("released %v, want %s", got, a)
			}
			r.cost("DEL", 1, 0)
		})
	}
}

// An owner keeps its address when it comes with another container, as a pod does.
func TestOwnerWithAnotherContainer(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	a := r.one(Request{Host: s.host, Owner: "vm-moves", ContainerID: "vm-c1"})
	if got := r.one(Request{Host: s.host, Owner: "vm-moves", ContainerID: "vm-c2"}); got != a {
		t.Errorf("%s, want %s", got, a)
	}
	if got := r.del(ReleaseRequest{ContainerID: "vm-c1"}); len(got) != 0 {
		t.Errorf("the old container released %v", got)
	}
	if got := r.del(ReleaseRequest{ContainerID: "vm-c2"}); !slices.Equal(got, []netip.Addr{a}) {
		t.Errorf("released %v, want %s", got, a)
	}
}

// An exhausted pool is refused with its counts, and serves again when an address comes back.
func TestExhausted(t *testing.T) {
	s := newSite("9", "11-12")
	r := newReplica(t, s.pool)
	var last Request
	for n := range 3 {
		p := newPod(t, fmt.Sprintf("exhausts-%d", n), s.host, r)
		last = s.of(p, p.Name+"-c")
		r.one(last)
	}
	p := newPod(t, "exhausts-late", s.host, r)
	r.tap.Forget()
	_, err := r.Allocate(t.Context(), s.of(p, "late-c"))
	refused(t, err, ipam.ReasonPoolExhausted,
		fmt.Sprintf(
			"no available IP for pod default/exhausts-late: pool %s (%s/24) has 0 of 3 addresses free, 3 active, 0 reserved", s.pool.Name, s.addr(0)))
	r.cost("a refusal", 0, 1)
	freed := r.del(del(last))
	if got := r.add(s.of(p, "late-c")); !slices.Equal(got, freed) {
		t.Errorf("%v, want %v", got, freed)
	}
}

// dual makes an IPv4 and an IPv6 pool of one network.
func dual(ipv4 []string, ipv6 ...string) (four, six site) {
	four = newSite(ipv4...)
	four.pool.Spec.Network = "net-" + four.pool.Name
	six = four
	prefix := fmt.Sprintf("2001:db8:%x::", four.addr(0).As4()[2])
	six.addr = func(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("%s%x", prefix, i)) }
	six.pool = four.pool.DeepCopy()
	six.pool.Name += "-6"
	six.pool.Spec.Net, six.pool.Spec.Mask, six.pool.Spec.Gateway = prefix, 64, prefix+"1"
	six.pool.Spec.AvailableIPs = nil
	for _, a := range ipv6 {
		six.pool.Spec.AvailableIPs = append(six.pool.Spec.AvailableIPs, prefix+a)
	}
	return four, six
}

// Rule 10: a network with pools of both families gives one address of each, by one write each; both are
// repeated and released together.
func TestDualStack(t *testing.T) {
	four, six := dual([]string{"9-12"}, "9", "a")
	r := newReplica(t, four.pool, six.pool)
	p := newPod(t, "dual", four.host, r)
	request := four.of(p, "dual-c")
	r.tap.Forget()
	got := r.add(request)
	r.cost("the first ADD", 2, 0)
	if len(got) != 2 || !got[0].Is4() || got[1].Is4() {
		t.Fatalf("got %v, want an IPv4 and an IPv6 address", got)
	}
	if again := r.add(request); !slices.Equal(again, got) {
		t.Errorf("again: %v, want %v", again, got)
	}
	r.cost("a repeated ADD", 0, 2)
	if released := r.del(del(request)); !slices.Equal(released, got) {
		t.Errorf("released %v, want %v", released, got)
	}
	r.cost("DEL", 2, 0)
}

// Rule 10: a partial set is never answered. What there is of it stays with the request, and the next ADD
// completes it.
func TestPartialSetIsCompleted(t *testing.T) {
	for what, test := range map[string]struct {
		second intercept.Hook // what happens to the second write
		want   ipam.Reason
		kept   int // how many addresses the refused request keeps
	}{
		"lost":          {intercept.Fail(errReset), ipam.ReasonOutcomeUnknown, 1},
		"answer lost":   {intercept.LoseAnswer(errReset), ipam.ReasonOutcomeUnknown, 2},
		"refused":       {intercept.Answer(403, metav1.StatusReasonForbidden, 0), ipam.ReasonForbidden, 1},
		"never started": {intercept.Fail(errRefused), ipam.ReasonUnavailable, 1},
	} {
		t.Run(what, func(t *testing.T) {
			four, six := dual([]string{"9-12"}, "9", "a")
			r := newReplica(t, four.pool, six.pool)
			p := newPod(t, "partial-"+strings.ReplaceAll(what, " ", "-"), four.host, r)
			request := four.of(p, p.Name+"-c")
			r.tap.Forget()
			mend := r.tap.On(func(q *http.Request) bool { return writes(q) && r.tap.Count(writes) == 2 }, test.second)
			_, err := r.Allocate(t.Context(), request)
			refused(t, err, test.want)
			if n := len(four.held(t)) + len(six.held(t)); n != test.kept {
				t.Errorf("%d addresses are held, want %d", n, test.kept)
			}
			mend()
			got := r.add(request)
			if len(got) != 2 {
				t.Fatalf("completed to %v", got)
			}
			if n := len(four.held(t)) + len(six.held(t)); n != 2 {
				t.Errorf("%d addresses are held, want 2", n)
			}
			if again := r.add(request); !slices.Equal(again, got) {
				t.Errorf("again: %v, want %v", again, got)
			}
			if released := r.del(del(request)); len(released) != 2 {
				t.Errorf("released %v, want both", released)
			}
		})
	}
}

// Rule 10: a network that has no address of one family left gives none of the other either.
func TestDualStackExhausted(t *testing.T) {
	four, six := dual([]string{"9-12"}, "9")
	r := newReplica(t, four.pool, six.pool)
	first, second := newPod(t, "dual-1", four.host, r), newPod(t, "dual-2", four.host, r)
	r.add(four.of(first, "dual-1-c"))
	_, err := r.Allocate(t.Context(), four.of(second, "dual-2-c"))
	refused(t, err, ipam.ReasonPoolExhausted)
	if held := four.held(t); len(held) != 1 {
		t.Errorf("held: %v, want one", held)
	}
	r.del(ReleaseRequest{ContainerID: "dual-1-c"})
	if got := r.add(four.of(second, "dual-2-c")); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

// Rule 1: a client that has gone, or whose time is over, gets nothing committed.
func TestClientGoneBeforeTheCommit(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	p := newPod(t, "leaves", netip.MustParseAddr("192.0.2.1"), r) // on another host: found by a read
	for what, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"gone": context.WithCancel,
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Hour)
		},
	} {
		t.Run(what, func(t *testing.T) {
			r, gate := r.in(t), intercept.NewGate()
			remove := r.tap.On(podReads, gate.HoldAnswer)
			defer remove()
			ctx, leave := end(t.Context())
			done := r.adding(ctx, s.of(p, "leaves-c"))
			<-gate.Arrived()
			leave()
			if got := <-done; got.err == nil {
				t.Errorf("answered %v", got.addrs)
			} else {
				refused(t, got.err, ipam.ReasonUnavailable)
			}
			if held := s.held(t); len(held) != 0 {
				t.Errorf("held: %v", held)
			}
		})
	}
	over, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	_, err := r.Allocate(over, s.of(p, "leaves-c"))
	refused(t, err, ipam.ReasonUnavailable)
	if held := s.held(t); len(held) != 0 {
		t.Errorf("held: %v", held)
	}
}

// Rule 5: an answer waits for the own watch. Where that does not come in time the answer is retryable,
// and the next one is the same address.
func TestWatchDoesNotDeliverInTime(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	p := newPod(t, "waits", s.host, r)
	request := s.of(p, "waits-c")
	r.watch.Shut()
	ctx, leave := context.WithCancel(t.Context())
	done := r.adding(ctx, request)
	controlplane.Until(t, "the lease is stored", func() bool { return len(s.held(t)) == 1 })
	select {
	case got := <-done:
		t.Fatalf("answered before the watch: %+v", got)
	default:
	}
	leave()
	refused(t, (<-done).err, ipam.ReasonOutcomeUnknown)
	r.watch.Open()
	if got := r.one(request); s.held(t)[got] != "waits-c" || len(s.held(t)) != 1 {
		t.Errorf("got %s of %v", got, s.held(t))
	}
}

// A request that waits for another of the same pod gives up at its deadline.
func TestDeadlineBehindAnotherRequest(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	p := newPod(t, "queues", s.host, r)
	r.watch.Shut()
	first := r.adding(t.Context(), s.of(p, "queues-c"))
	controlplane.Until(t, "the lease is stored", func() bool { return len(s.held(t)) == 1 })
	ctx, leave := context.WithCancel(t.Context())
	second := r.adding(ctx, s.of(p, "queues-c"))
	leave()
	refused(t, (<-second).err, ipam.ReasonUnavailable)
	r.watch.Open()
	if got := <-first; got.err != nil {
		t.Error(got.err)
	}
	if n := len(r.locks.by); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}

// The values of an answer are those of the pool that gives the address now, whatever its object said.
func TestAddressOfAnotherPoolTakesTheValues(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	old := lease.Params{Pool: "old", Bits: 25, Gateway: s.addr(1)}
	for n := 9; n <= 12; n++ {
		if _, err := r.leases.Write(t.Context(), lease.Lease{Addr: s.addr(n), Params: old}); err != nil {
			t.Fatal(err)
		}
	}
	p := newPod(t, "moved", s.host, r)
	got, err := r.Allocate(t.Context(), s.of(p, "moved-c"))
	if err != nil {
		t.Fatal(err)
	}
	if want := poolOf(t, s.pool).Params(); r.lease(got[0].Addr).Params != want || got[0].Params != want {
		t.Errorf("stored %+v, answered %+v; want %+v", r.lease(got[0].Addr).Params, got[0].Params, want)
	}
}
