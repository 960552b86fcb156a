package scheduling

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const eniIP = "tke.cloud.tencent.com/eni-ip"

// fixture is two racks with a pool each, a node without a pool and one without an address.
type fixture struct {
	*Extender
	t       *testing.T
	terms   map[string]allocator.Constraints // by name of the pod
	wrong   map[string]error
	missing map[string]bool // pods that nobody has made
	version uint64
}

// Of and Find stand for the resolver of policies and the API server.
func (f *fixture) Of(_ context.Context, pod workload.Pod) (allocator.Constraints, error) {
	return f.terms[pod.Name], f.wrong[pod.Name]
}

func (f *fixture) Find(_ context.Context, namespace, name, uid string, _ netip.Addr) (workload.Pod, error) {
	if f.missing[name] {
		return workload.Pod{}, workload.ErrNotFound
	}
	return workload.Pod{Namespace: namespace, Name: name, UID: uid}, nil
}

func (*fixture) On(workload.Pod, []netip.Addr) bool { return true }

func (f *fixture) FindLive(ctx context.Context, namespace, name, uid string) (workload.Pod, error) {
	return f.Find(ctx, namespace, name, uid, netip.Addr{})
}

// newSite gives each rack so many addresses, or a pool that allocates nothing: 10.1.0.10 and on for hosts 192.0.1.x,
// 10.2.0.10 and on for 192.0.2.x.
func newFixture(t *testing.T, addresses ...int) *fixture {
	t.Helper()
	f := &fixture{t: t, terms: map[string]allocator.Constraints{}, wrong: map[string]error{}, missing: map[string]bool{}}
	index := index.New()
	nodes := map[string][]netip.Addr{"bare": {netip.MustParseAddr("192.0.9.1")}}
	for rack := 1; rack <= len(addresses); rack++ {
		plan, err := ipam.NewPlan(ipam.PlanSpec{Net: fmt.Sprintf("10.%d.0.0", rack), Mask: 24,
			Gateway:   fmt.Sprintf("10.%d.0.1", rack),
			Available: []string{fmt.Sprintf("10.%d.0.10-10.%d.0.%d", rack, rack, 9+max(1, addresses[rack-1]))}})
		if err != nil {
			t.Fatal(err)
		}
		index.Pools.SetPool(ipam.Pool{
			Name: fmt.Sprintf("rack%d", rack), Plan: plan, Cordoned: addresses[rack-1] == 0,
			HostSubnets: ipam.Networks{netip.MustParsePrefix(fmt.Sprintf("192.0.%d.0/24", rack)): {}},
		})
		for n := 1; n <= 2; n++ {
			nodes[fmt.Sprintf("node%d%d", rack, n)] = []netip.Addr{netip.MustParseAddr(fmt.Sprintf("192.0.%d.%d", rack, n))}
		}
	}
	f.Extender = New(index, f, f, func(name string) []netip.Addr { return nodes[name] }, time.Now, Resources{eniIP})
	return f
}

// lease has the index know an address.
func (f *fixture) lease(addr, uid string, state lease.State, sticky lease.Retention) {
	f.version++
	a := netip.MustParseAddr(addr)
	pool, _ := f.Index.Pools.PoolOf(a)
	h := lease.Holder{PodUID: uid, Namespace: "shop", PodName: uid, ContainerID: "c" + uid, IfName: "eth0"}
	if state == lease.Active {
		h.Host = netip.MustParseAddr("192.0.1.1")
	}
	f.Index.Feed.Watched(lease.Lease{
		Addr: a, Version: f.version, State: state, Params: lease.Params{Pool: pool, Bits: 24}, Holder: h, Retention: sticky,
		Updated: time.Now(),
	})
}

func newPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{eniIP: resource.MustParse("1")}}}}
	for _, c := range change {
		c(p)
	}
	return p
}

var everywhere = []string{"node11", "node12", "node21", "node22", "bare", "ghost"}

// filter is the answer of a question as a line.
func (f *fixture) filter(p *corev1.Pod, nodes ...string) string {
	f.t.Helper()
	if len(nodes) == 0 {
		nodes = everywhere
	}
	v, err := f.Filter(f.t.Context(), p, nodes)
	if err != nil {
		return "error: " + err.Error()
	}
	var out []string
	for _, n := range nodes {
		switch text := v.Failed[n]; {
		case slices.Contains(v.Pass, n):
			out = append(out, n)
		case n != "bare" && n != "ghost":
			out = append(out, n+" "+strings.TrimPrefix(text, Prefix))
		case n == "bare" && text != NoPool, n == "ghost" && text != UnknownNode:
			out = append(out, n+" "+text)
		}
	}
	return strings.Join(out, ", ")
}

func ofSet(t *testing.T, text string) *netipx.IPSet {
	t.Helper()
	r, err := ipaddr.ParseRange(text)
	if err != nil {
		t.Fatal(err)
	}
	var b netipx.IPSetBuilder
	b.AddRange(r)
	set, err := b.IPSet()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

const (
	all     = "node11, node12, node21, node22"
	rack1   = "node11, node12, node21 NoFIPLeft, node22 NoFIPLeft"
	rack2   = "node11 NoFIPLeft, node12 NoFIPLeft, node21, node22"
	nowhere = "node11 NoFIPLeft, node12 NoFIPLeft, node21 NoFIPLeft, node22 NoFIPLeft"
)

// TestFilter is what each kind of pod is told about all nodes.
func TestFilter(t *testing.T) {
	web := lease.Retention{Claim: "shop/web", Fixed: true}
	keyed := lease.Retention{Claim: "shop/db", PodPrimaryKey: "db-0", Fixed: true}
	for name, tc := range map[string]struct {
		sizes  []int
		terms  allocator.Constraints
		wrong  error
		leases func(*fixture)
		want   string
	}{
		"free everywhere":  {sizes: []int{2, 2}, want: all},
		"one rack is full": {sizes: []int{1, 1}, leases: func(f *fixture) { f.lease("10.1.0.10", "x", lease.Active, lease.Retention{}) }, want: rack2},
		"all are full": {sizes: []int{1, 1}, leases: func(f *fixture) {
			f.lease("10.1.0.10", "x", lease.Active, lease.Retention{})
			f.lease("10.2.0.10", "y", lease.Reserved, lease.Retention{})
		}, want: nowhere},
		"a pool by its name": {sizes: []int{2, 2}, terms: allocator.Constraints{Pools: []string{"rack2"}}, want: rack2},
		"one address":        {sizes: []int{2, 2}, terms: allocator.Constraints{Sets: []*netipx.IPSet{ofSet(t, "10.1.0.11")}}, want: rack1},
		"two ranges":         {sizes: []int{4, 4}, terms: allocator.Constraints{Sets: []*netipx.IPSet{ofSet(t, "10.1.0.10-10.1.0.11"), ofSet(t, "10.1.0.12")}}, want: rack1},
		"two ranges, one of them used up": {
			sizes: []int{
				4, 4,
			}, terms: allocator.Constraints{Sets: []*netipx.IPSet{ofSet(t, "10.1.0.10-10.1.0.11"), ofSet(t, "10.1.0.12")}},
			leases: func(f *fixture) { f.lease("10.1.0.12", "x", lease.Active, lease.Retention{}) }, want: nowhere,
		},
		"ranges of two racks": {sizes: []int{2, 2}, terms: allocator.Constraints{Sets: []*netipx.IPSet{ofSet(t, "10.1.0.10"), ofSet(t, "10.2.0.10")}}, want: nowhere},
		"kept for the pod": {
			sizes: []int{2, 2}, terms: allocator.Constraints{Retention: keyed},
			leases: func(f *fixture) { f.lease("10.2.0.10", "", lease.Reserved, keyed) }, want: rack2,
		},
		"its earlier pod has it": {
			sizes: []int{2, 2}, terms: allocator.Constraints{Retention: keyed},
			leases: func(f *fixture) { f.lease("10.2.0.10", "db", lease.Active, keyed) }, want: rack2,
		},
		"kept for the app": {
			sizes: []int{2, 2}, terms: allocator.Constraints{Retention: web},
			leases: func(f *fixture) { f.lease("10.1.0.10", "", lease.Reserved, web) }, want: rack1,
		},
		"the app has all it kept in use": {
			sizes: []int{2, 2}, terms: allocator.Constraints{Retention: web},
			leases: func(f *fixture) { f.lease("10.1.0.10", "w", lease.Active, web) }, want: all,
		},
		"the claim is full": {
			sizes: []int{2, 2}, terms: allocator.Constraints{Retention: web, Room: 1},
			leases: func(f *fixture) { f.lease("10.1.0.10", "w", lease.Active, web) }, want: nowhere,
		},
		"the pool is full, and one is kept for it": {
			sizes: []int{1, 0}, terms: allocator.Constraints{Retention: web},
			leases: func(f *fixture) { f.lease("10.1.0.10", "", lease.Reserved, web) }, want: rack1,
		},
		"kept for the app in a pool that is going": {
			sizes: []int{2, 2}, terms: allocator.Constraints{Retention: web},
			leases: func(f *fixture) {
				f.lease("10.1.0.10", "", lease.Reserved, web)
				p, _ := f.Index.Pools.Get("rack1")
				p.Terminating = true
				f.Index.Pools.SetPool(p)
			}, want: rack2,
		},
		"kept for the app on another interface": {
			sizes: []int{2, 2}, terms: allocator.Constraints{Retention: web}, leases: func(f *fixture) {
				f.lease("10.2.0.10", "", lease.Reserved, web)
				l, _ := f.Index.Leases.Get(netip.MustParseAddr("10.2.0.10"))
				l.IfName, l.PodUID, l.Version = "net1", "", l.Version+1
				f.Index.Feed.Watched(l)
			}, want: rack2,
		},
		"kept for others": {
			sizes: []int{1, 1}, leases: func(f *fixture) { f.lease("10.1.0.10", "", lease.Reserved, web) }, want: rack2,
		},
		"wrong annotations": {
			sizes: []int{2, 2}, wrong: ipam.Refuse(ipam.ReasonInvalidAnnotation, "policy x is none"),
			want: strings.NewReplacer("NoFIPLeft", "InvalidAnnotation: policy x is none").Replace(nowhere) +
				", bare FloatingIPPlugin:InvalidAnnotation: policy x is none, ghost FloatingIPPlugin:InvalidAnnotation: policy x is none",
		},
		"the API server does not say": {sizes: []int{2, 2}, wrong: context.DeadlineExceeded, want: "error: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, tc.sizes...)
			f.terms["p"], f.wrong["p"] = tc.terms, tc.wrong
			if tc.leases != nil {
				tc.leases(f)
			}
			if diff := cmp.Diff(tc.want, f.filter(newPod("p"))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOnlyPodsThatAsk are looked at.
func TestOnlyPodsThatAsk(t *testing.T) {
	f := newFixture(t, 0, 0)
	for name, change := range map[string]func(*corev1.Pod){
		"without the resource": func(p *corev1.Pod) { p.Spec.Containers = nil },
		"with zero of it":      func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests[eniIP] = resource.MustParse("0") },
		"on the host network":  func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"with another": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"a.b/c": resource.MustParse("1")}
		},
	} {
		v, err := f.Filter(t.Context(), newPod("p", change), everywhere)
		if err != nil || !slices.Equal(v.Pass, everywhere) || len(v.Failed) > 0 {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if scores, err := f.Scores(t.Context(), newPod("p", change), everywhere); err != nil || slices.Max(scores) > 0 {
			t.Errorf("%s: scores %v, %v", name, scores, err)
		}
	}
	for name, change := range map[string]func(*corev1.Pod){
		"in limits": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{eniIP: resource.MustParse("1")}}
		},
		"in an init container": func(p *corev1.Pod) { p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, nil },
		"for the whole pod":    func(p *corev1.Pod) { p.Spec.Resources, p.Spec.Containers = &p.Spec.Containers[0].Resources, nil },
	} {
		p := newPod("p", change)
		trimmed := workload.Trim(p)
		if f.Resources.Mark(trimmed, p); !f.Resources.Requested(p) || !f.Resources.Requested(trimmed) {
			t.Errorf("%s: it asks for none", name)
		}
	}
}

// TestBurst: no more pods are let through than there are addresses, before any of them has asked for one.
func TestBurst(t *testing.T) {
	f := newFixture(t, 3, 0)
	for i := range 3 {
		if got := f.filter(newPod(fmt.Sprint("p", i)), "node11", "node12"); got != "node11, node12" {
			t.Fatalf("pod %d: %s", i, got)
		}
		p := newPod(fmt.Sprint("p", i), func(p *corev1.Pod) { p.Spec.NodeName = "node11" })
		f.PodChanged(p)
	}
	late := newPod("late")
	if got := f.filter(late); got != nowhere {
		t.Errorf("one more: %s", got)
	}
	if placed, chosen := f.Assumed(); placed != 3 || chosen != 0 {
		t.Errorf("%d placed, %d chosen", placed, chosen)
	}
	if got := f.filter(newPod("p1"), "node11"); got != "node11" {
		t.Errorf("a placed pod is asked about again: %s", got)
	}
	f.lease("10.1.0.10", "p0", lease.Active, lease.Retention{}) // whichever was assumed for it
	if got := f.filter(late); got != nowhere {
		t.Errorf("one of them got its address: %s", got)
	}
	f.PodChanged(newPod("p1", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "node11", corev1.PodFailed }))
	if got := f.filter(late); got != rack1 {
		t.Errorf("one of them failed: %s", got)
	}
	if got := f.filter(newPod("later"), "node21", "bare"); got != "node21 NoFIPLeft" {
		t.Errorf("elsewhere: %s", got)
	}
	f.PodGone(newPod("p2"))
	if got := f.filter(newPod("later")); got != rack1 {
		t.Errorf("one of them is gone: %s", got)
	}
}

// TestClaimOfASize: pods on their way count against what their claim may have, by one address of a family each that is
// not kept for it already.
func TestClaimOfASize(t *testing.T) {
	f := newFixture(t, 8, 0)
	for i := range 5 {
		f.terms[fmt.Sprint("p", i)] = allocator.Constraints{
			Retention: lease.Retention{Claim: "shop/web", Fixed: true}, Room: 3,
		}
	}
	f.lease("10.1.0.17", "", lease.Reserved, lease.Retention{Claim: "shop/web", Fixed: true})
	f.placed("p0", "node11") // takes what is kept
	f.placed("p1", "node12")
	if got := f.filter(newPod("p2"), "node11", "node12"); got != rack1Nodes {
		t.Errorf("the third of three: %s", got)
	}
	f.PodChanged(newPod("p2", func(p *corev1.Pod) { p.Spec.NodeName = "node11" }))
	if got := f.filter(newPod("p3")); got != nowhere {
		t.Errorf("one more than there may be: %s", got)
	}
	v, err := f.Filter(t.Context(), newPod("p3"), everywhere)
	if err != nil || v.Refusal == nil || v.Refusal.Reason != ipam.ReasonClaimFull ||
		!strings.Contains(v.Refusal.Message, "claim shop/web holds 1 of 3 addresses, 2 more are for its pods on their way") {
		t.Errorf("it is told %v, %v", v.Refusal, err)
	}
	if got := f.filter(newPod("other")); got != rack1 {
		t.Errorf("a pod of no claim: %s", got)
	}
	f.lease("10.1.0.17", "p0", lease.Active, lease.Retention{Claim: "shop/web", Fixed: true})
	f.lease("10.1.0.11", "p1", lease.Active, lease.Retention{Claim: "shop/web", Fixed: true})
	if got := f.filter(newPod("p3")); got != nowhere {
		t.Errorf("two of them have theirs: %s", got)
	}
	f.PodGone(newPod("p2"))
	if got := f.filter(newPod("p3")); got != rack1 {
		t.Errorf("the one that has none is gone: %s", got)
	}
}

// bound has rack 1 let a host have so many addresses.
func (f *fixture) bound(n int, change ...func(*ipam.Pool)) {
	p, _ := f.Index.Pools.Get("rack1")
	p.MaxPerHost = n
	for _, c := range change {
		c(&p)
	}
	f.Index.Pools.SetPool(p)
}

// on has a pod on a host have an address.
func (f *fixture) on(addr, uid, host string, sticky lease.Retention) {
	f.lease(addr, uid, lease.Active, sticky)
	l, _ := f.Index.Leases.Get(netip.MustParseAddr(addr))
	f.version++
	l.Host, l.Version = netip.MustParseAddr(host), f.version
	f.Index.Feed.Watched(l)
}

// wide makes a pool beside that of rack 1 that bounds nothing.
func (f *fixture) wide() {
	f.t.Helper()
	plan, err := ipam.NewPlan(ipam.PlanSpec{
		Net: "10.9.0.0", Mask: 24, Gateway: "10.9.0.1", Available: []string{"10.9.0.10-10.9.0.20"},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.Index.Pools.SetPool(ipam.Pool{
		Name: "wide", Plan: plan, HostSubnets: ipam.Networks{netip.MustParsePrefix("192.0.1.0/24"): {}},
	})
}

// placed has a pod be on a node that it was let through to.
func (f *fixture) placed(name, node string) {
	f.t.Helper()
	if got := f.filter(newPod(name), node); got != node {
		f.t.Fatalf("pod %s: %s", name, got)
	}
	f.PodChanged(newPod(name, func(p *corev1.Pod) { p.Spec.NodeName = node }))
}

const rack1Nodes = "node11, node12"

// rack1 is what a pod is told about the nodes of rack 1.
func (f *fixture) rack1(name string) string {
	f.t.Helper()
	return f.filter(newPod(name), "node11", "node12")
}

// TestPerHost: of a pool that bounds what one host has, those that are on a host and have no address yet count there,
// and on no other.
func TestPerHost(t *testing.T) {
	f := newFixture(t, 9, 1)
	f.bound(2)
	f.lease("10.1.0.18", "old", lease.Active, lease.Retention{}) // on node11
	f.placed("a", "node11")
	if got := f.rack1("b"); got != "node11 NoFIPLeft, node12" {
		t.Errorf("one is on node11 with its address, one without: %s", got)
	}
	scores, err := f.Scores(t.Context(), newPod("p"), everywhere)
	if diff := cmp.Diff([]int64{5, 10, 5, 5, 0, 0}, scores); diff != "" || err != nil {
		t.Errorf("scores (-want +got):\n%s%v", diff, err)
	}
	f.placed("b", "node12")
	if got := f.rack1("c"); got != "node11 NoFIPLeft, node12" {
		t.Errorf("one on node12: %s", got)
	}
	f.placed("c", "node12")
	if got := f.rack1("d"); got != "node11 NoFIPLeft, node12 NoFIPLeft" {
		t.Errorf("both have two: %s", got)
	}
	f.PodGone(newPod("a"))
	if got := f.rack1("d"); got != "node11, node12 NoFIPLeft" {
		t.Errorf("one of node11 is gone: %s", got)
	}
}

// TestPerHostOfOthers: a pod that is let through and comes to no node closes none; whose address is being written, or
// is that of its earlier pod on the host, counts once.
func TestPerHostOfOthers(t *testing.T) {
	f := newFixture(t, 9)
	f.bound(1)
	for i := range 5 {
		if got := f.rack1("stuck") + "; " + f.rack1(fmt.Sprint("p", i)); got != rack1Nodes+"; "+rack1Nodes {
			t.Errorf("nobody is on a node: %s", got)
		}
	}
	f = newFixture(t, 9)
	f.bound(2)
	f.placed("a", "node11")
	if got := f.rack1("b"); got != rack1Nodes {
		t.Errorf("one is on its way: %s", got)
	}
	if picks, refusal := f.Index.Pick(ipam.PickRequest{
		Host: netip.MustParseAddr("192.0.1.1"), Namespace: "shop", Key: "a/eth0", IfName: "eth0",
	}, time.Now()); refusal != nil || len(picks) != 1 {
		t.Fatal(picks, refusal)
	}
	if got := f.rack1("b"); got != rack1Nodes {
		t.Errorf("one is being given its address: %s", got)
	}
	f = newFixture(t, 9)
	f.bound(2)
	keyed := lease.Retention{Claim: "shop/web", PodPrimaryKey: "web-0", Fixed: true}
	f.on("10.1.0.11", "old", "192.0.1.1", keyed)
	f.terms["web-0"] = allocator.Constraints{Retention: keyed}
	f.placed("web-0", "node11")
	if got := f.rack1("b"); got != rack1Nodes {
		t.Errorf("one is to take over what its earlier pod has there: %s", got)
	}
}

// TestKeptElsewhere: without bounds a pod never goes past what is kept for its app, also where another pool of the node
// has some that is for another interface.
func TestKeptElsewhere(t *testing.T) {
	f := newFixture(t, 9, 9)
	plan, err := ipam.NewPlan(ipam.PlanSpec{
		Net: "10.9.0.0", Mask: 24, Gateway: "10.9.0.1", Available: []string{"10.9.0.10-10.9.0.20"},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Index.Pools.SetPool(ipam.Pool{
		Name: "storage", Plan: plan, Priority: -1,
		Hosts: map[netip.Addr]struct{}{netip.MustParseAddr("192.0.1.1"): {}, netip.MustParseAddr("192.0.2.1"): {}},
	})
	web := lease.Retention{Claim: "shop/web", Fixed: true}
	f.lease("10.1.0.11", "", lease.Reserved, web)
	f.lease("10.9.0.12", "", lease.Reserved, web)
	l, _ := f.Index.Leases.Get(netip.MustParseAddr("10.9.0.12"))
	f.version++
	l.IfName, l.Version = "net1", f.version
	f.Index.Feed.Watched(l)
	f.terms["web"] = allocator.Constraints{Retention: web}
	for range 8 {
		if got := f.filter(newPod("web"), "node21", "node22"); got != "node21 NoFIPLeft, node22 NoFIPLeft" {
			t.Fatal(got)
		}
	}
}

// TestNodeOfTwoRacks: a pod is counted with what it gets by that address of a node which passes, not by another one.
func TestNodeOfTwoRacks(t *testing.T) {
	f := newFixture(t, 9, 1)
	addrs := f.NodeAddrs
	f.NodeAddrs = func(name string) []netip.Addr {
		if name == "both" {
			return []netip.Addr{netip.MustParseAddr("192.0.1.7"), netip.MustParseAddr("192.0.2.7")}
		}
		return addrs(name)
	}
	if got := f.filter(newPod("first"), "both"); got != "both" {
		t.Fatal(got)
	}
	if got := f.filter(newPod("second"), "node21"); got != "node21" {
		t.Errorf("rack 2 has one address, and nobody needs it: %s", got)
	}
}

// TestPerHostKept: an address of an earlier pod costs its own host nothing; where no host may have what is kept for an
// app, its pod goes to another pool, and not while one may.
func TestPerHostKept(t *testing.T) {
	keyed, web := lease.Retention{Claim: "shop/web", PodPrimaryKey: "web-0", Fixed: true},
		lease.Retention{Claim: "shop/web", Fixed: true}
	for _, nodes := range [][]string{{"node11", "node12"}, {"node12", "node11"}} {
		f := newFixture(t, 9)
		f.bound(1)
		f.on("10.1.0.11", "old", "192.0.1.1", keyed)
		f.on("10.1.0.12", "other", "192.0.1.2", lease.Retention{})
		f.terms["web-0"] = allocator.Constraints{Retention: keyed}
		if v, err := f.Filter(t.Context(), newPod("web-0"), nodes); err != nil || !slices.Equal(v.Pass, []string{"node11"}) {
			t.Errorf("asked about %v: %+v, %v", nodes, v, err)
		}
	}
	for name, change := range map[string]func(*ipam.Pool){
		"by subnet": func(*ipam.Pool) {},
		"by name": func(p *ipam.Pool) {
			p.HostSubnets, p.Hosts = nil, map[netip.Addr]struct{}{
				netip.MustParseAddr("192.0.1.1"): {}, netip.MustParseAddr("192.0.1.2"): {},
			}
		},
	} {
		f := newFixture(t, 9)
		f.bound(1, change)
		f.wide()
		f.on("10.1.0.11", "x1", "192.0.1.1", lease.Retention{})
		f.lease("10.1.0.13", "", lease.Reserved, web)
		f.terms["web"] = allocator.Constraints{Retention: web}
		if got := f.rack1("web"); got != "node11 NoFIPLeft, node12" {
			t.Errorf("%s: node12 may have what is kept: %s", name, got)
		}
		f.on("10.1.0.12", "x2", "192.0.1.2", lease.Retention{})
		if got := f.rack1("web"); got != rack1Nodes {
			t.Errorf("%s: no node may have what is kept: %s", name, got)
		}
	}
}

// TestFoundOnNodes: a replica that has let nobody through counts the pods that are on nodes and have no address.
func TestFoundOnNodes(t *testing.T) {
	f := newFixture(t, 2, 0)
	f.lease("10.1.0.10", "old", lease.Active, lease.Retention{})
	for _, name := range []string{"old", "new"} {
		f.PodChanged(newPod(name, func(p *corev1.Pod) { p.Spec.NodeName = "node12" }))
	}
	f.wrong["hopeless"] = ipam.Refuse(ipam.ReasonInvalidAnnotation, "wrong")
	f.PodChanged(newPod("hopeless", func(p *corev1.Pod) { p.Spec.NodeName = "node12" }))
	if got := f.filter(newPod("p")); got != nowhere {
		t.Errorf("%s", got)
	}
	f.PodChanged(newPod("new", func(p *corev1.Pod) { p.Spec.NodeName, p.DeletionTimestamp = "node12", &metav1.Time{Time: time.Now()} }))
	if got := f.filter(newPod("p")); got != rack1 {
		t.Errorf("%s", got)
	}
}

// TestStrangers: who asks about pods that are not there, or without UIDs, keeps nobody from an address.
func TestStrangers(t *testing.T) {
	f := newFixture(t, 1, 0)
	f.missing["nobody"] = true
	for _, p := range []*corev1.Pod{newPod("nobody"), newPod("p", func(p *corev1.Pod) { p.UID = "" }), newPod("real")} {
		if got := f.filter(p); got != rack1 {
			t.Errorf("pod %s: %s", p.Name, got)
		}
	}
}

// TestWaiting: one address is left in each rack, and a pod that was let through may go to either. The next one waits
// until that is known, or for a second.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 1, 1)
		if got := f.filter(newPod("first")); got != all {
			t.Fatal(got)
		}
		answer := make(chan string)
		go func() { answer <- f.filter(newPod("second")) }()
		synctest.Wait()
		f.PodChanged(newPod("first", func(p *corev1.Pod) { p.Spec.NodeName = "node21" }))
		if got := <-answer; got != rack1 {
			t.Errorf("the first is on rack 2: %s", got)
		}
		began := time.Now()
		if got := f.filter(newPod("third")); got != nowhere {
			t.Errorf("the second may be on rack 1: %s", got)
		}
		if took := time.Since(began); took != patience {
			t.Errorf("it waited for %s", took)
		}
		// A pod that never comes is forgotten.
		<-time.After(chosenLife + time.Second)
		if got := f.filter(newPod("third")); got != rack1 {
			t.Errorf("the second has not come: %s", got)
		}
	})
}

// TestManyChosen: what is remembered of pods that are on no node is bounded.
func TestManyChosen(t *testing.T) {
	f := newFixture(t, 0, 0)
	for i := range maxChosen + 5 {
		uid := fmt.Sprint("p", i)
		f.assumed.pods[uid] = &assumedPod{
			pod: workload.Pod{UID: uid}, simulation: allocator.NewSimulation(f.Index, workload.Pod{UID: uid},
				allocator.Constraints{}), at: time.Now(),
		}
	}
	if _, chosen := f.Assumed(); chosen != maxChosen {
		t.Errorf("%d are remembered", chosen)
	}
}

func TestScores(t *testing.T) {
	f := newFixture(t, 20, 5)
	scores, err := f.Scores(t.Context(), newPod("p"), everywhere)
	if diff := cmp.Diff([]int64{10, 10, 3, 3, 0, 0}, scores); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
	f.terms["p"] = allocator.Constraints{Pools: []string{"rack2"}}
	if scores, err = f.Scores(t.Context(), newPod("p"), everywhere); !slices.Equal(scores, []int64{0, 0, 10, 10, 0, 0}) ||
		err != nil {
		t.Errorf("of one pool: %v, %v", scores, err)
	}
	f.wrong["p"] = ipam.Refuse(ipam.ReasonInvalidAnnotation, "wrong")
	if scores, err = f.Scores(t.Context(), newPod("p"), everywhere); slices.Max(scores) != 0 || err != nil {
		t.Errorf("of wrong annotations: %v, %v", scores, err)
	}
	f.wrong["p"] = context.DeadlineExceeded
	if _, err = f.Scores(t.Context(), newPod("p"), everywhere); err == nil {
		t.Error("without an API server there are scores")
	}
}

func TestParseResources(t *testing.T) {
	many := []string{}
	for i := range MaxResources + 1 {
		many = append(many, fmt.Sprintf("a.b/c%d", i))
	}
	for _, tc := range []struct {
		names []string
		wrong string
	}{
		{nil, ""}, {[]string{eniIP, "netservice.bkbcs.tencent.com/bcsnetip"}, ""},
		{[]string{""}, `"" is not the name of an extended resource, such as example.com/address`},
		{[]string{"cpu"}, `"cpu" is not the name of an extended resource, such as example.com/address`},
		{[]string{"a b/c"}, `"a b/c" is not the name of an extended resource, such as example.com/address`},
		{[]string{"kubernetes.io/ip"}, `"kubernetes.io/ip" is a name of Kubernetes' own`},
		{[]string{"x.kubernetes.io/ip"}, `"x.kubernetes.io/ip" is a name of Kubernetes' own`},
		{[]string{"requests.a/b"}, `"requests.a/b" begins with requests., which quotas use`},
		{[]string{"a.b/c", "a.b/c"}, `"a.b/c" is named twice`},
		{many, "there are more than 8 names"},
	} {
		_, err := ParseResources(tc.names)
		if got := fmt.Sprint(err); err == nil && tc.wrong != "" || err != nil && got != tc.wrong {
			t.Errorf("%q: %v, want %s", tc.names, err, tc.wrong)
		}
	}
}

// slowTerms answers about one pod when it is told to.
type slowTerms struct {
	*fixture
	slow    string
	asked   chan struct{}
	answers chan struct{}
}

func (s *slowTerms) Of(ctx context.Context, pod workload.Pod) (allocator.Constraints, error) {
	if pod.Name != s.slow {
		return s.fixture.Of(ctx, pod)
	}
	s.asked <- struct{}{}
	select {
	case <-s.answers:
		return s.fixture.Of(ctx, pod)
	case <-ctx.Done():
		return allocator.Constraints{}, ctx.Err()
	}
}

// TestSlowOwners: while the terms of a pod that was found on its node are read from the API server, the watch of pods
// goes on. Who asks about other pods waits for what it has to count with; a question that was given up leaves the
// reading to the next.
func TestSlowOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 2, 0)
		slow := &slowTerms{fixture: f, slow: "found", asked: make(chan struct{}), answers: make(chan struct{})}
		f.Constraints = slow
		onNode := func(name string) *corev1.Pod {
			return newPod(name, func(p *corev1.Pod) { p.Spec.NodeName = "node11" })
		}
		f.PodChanged(onNode("found"))
		ctx, giveUp := context.WithCancel(t.Context())
		gaveUp := make(chan error)
		go func() {
			_, err := f.Filter(ctx, newPod("impatient"), everywhere)
			gaveUp <- err
		}()
		<-slow.asked
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			f.PodChanged(onNode("other"))
			f.PodGone(onNode("other"))
			f.Assumed()
		}()
		select {
		case <-watched:
		case <-time.After(time.Minute):
			t.Error("the watch of pods waits for the API server")
		}
		answers := make(chan string)
		for _, name := range []string{"a", "b"} {
			go func() { answers <- f.filter(newPod(name)) }()
		}
		synctest.Wait()
		giveUp()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up was told %v", err)
		}
		<-slow.asked // one of the others, and no more than one
		synctest.Wait()
		slow.answers <- struct{}{}
		got := []string{<-answers, <-answers}
		slices.Sort(got)
		if diff := cmp.Diff([]string{nowhere, rack1}, got); diff != "" {
			t.Errorf("two addresses, one of which the pod that was found counts on (-want +got):\n%s", diff)
		}
	})
}

// TestQuota: of a pool that bounds what a namespace has, the pods of it that are on their way count, wherever they come
// to.
func TestQuota(t *testing.T) {
	f := newFixture(t, 9)
	f.bound(0, func(p *ipam.Pool) { p.MaxPerNamespace = 2 })
	f.placed("a", "node11")
	if got := f.rack1("b"); got != rack1Nodes {
		t.Errorf("one has not its address yet: %s", got)
	}
	if got := f.rack1("c"); got != "node11 NoFIPLeft, node12 NoFIPLeft" {
		t.Errorf("one more is let through: %s", got)
	}
	v, err := f.Filter(t.Context(), newPod("c"), everywhere)
	const why = "no available IP for pod shop/c: pool rack1 (10.1.0.0/24) has 9 of 9 addresses free, 0 active, 0 " +
		"reserved, namespace shop has 0 (and 2 on their way) of the 2 that it may have"
	if err != nil || v.Refusal == nil || v.Refusal.Reason != ipam.ReasonQuotaExceeded || v.Refusal.Message != why {
		t.Errorf("it is told %v, %v", v.Refusal, err)
	}
	if got := f.filter(newPod("other", func(p *corev1.Pod) { p.Namespace = "bank" }), "node11",
		"node12"); got != rack1Nodes {
		t.Errorf("a pod of another namespace: %s", got)
	}
	f.lease("10.1.0.11", "a", lease.Active, lease.Retention{})
	f.PodGone(newPod("b"))
	scores, err := f.Scores(t.Context(), newPod("c"), everywhere[:2])
	if diff := cmp.Diff([]int64{10, 10}, scores); diff != "" || err != nil {
		t.Errorf("scores (-want +got):\n%s%v", diff, err)
	}
	if got := f.rack1("c"); got != rack1Nodes {
		t.Errorf("one has its address, the other is gone: %s", got)
	}
	f.lease("10.1.0.12", "c", lease.Active, lease.Retention{})
	if scores, err = f.Scores(t.Context(), newPod("d"), everywhere[:2]); err != nil ||
		cmp.Diff([]int64{0, 0}, scores) != "" {
		t.Errorf("scores of a pod that may not have one: %v, %v", scores, err)
	}
}
