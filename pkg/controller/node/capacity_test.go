package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/scheduling"
)

const eniIP = "tke.cloud.tencent.com/eni-ip"

// offers is what publishes on the nodes of a test, whose clock it has. Its patches reach the nodes as they would by the
// API server.
type offers struct {
	*Capacity
	t       testing.TB
	clock   time.Time
	version int
	objects map[string]*corev1.Node
}

func newOffers(t testing.TB, resources ...string) *offers {
	t.Helper()
	r, err := scheduling.ParseResources(resources)
	if err != nil {
		t.Fatal(err)
	}
	o := &offers{t: t, clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), objects: map[string]*corev1.Node{}}
	o.Capacity = NewCapacity(Config{
		Index: index.New(), Resources: r, Now: func() time.Time { return o.clock },
		Ready:    func() error { return errors.ErrUnsupported },
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	o.Capacity.clock = o.now
	o.index.Feed.Subscribe(o.LeaseChanged)
	return o
}

// pool makes a pool of so many addresses, 10.<n>.0.10 and on, for the hosts in 192.0.<n>.0/24.
func (o *offers) pool(n, size int, change ...func(*ipam.Pool)) {
	o.t.Helper()
	plan, err := ipam.NewPlan(ipam.PlanSpec{
		Net: fmt.Sprintf("10.%d.0.0", n), Mask: 16, Gateway: fmt.Sprintf("10.%d.255.1", n),
		Available: []string{fmt.Sprintf("10.%d.0.10-10.%d.%d.%d", n, n, (9+size)/256, (9+size)%256)},
	})
	if err != nil {
		o.t.Fatal(err)
	}
	p := ipam.Pool{
		Name: fmt.Sprint("p", n), Plan: plan, HostSubnets: ipam.Networks{netip.MustParsePrefix(fmt.Sprintf("192.%d.0.0/16",
			n)): {}},
	}
	for _, c := range change {
		c(&p)
	}
	o.index.Pools.SetPool(p)
}

// node makes or changes a node.
func (o *offers) node(name, addr string, change ...func(*corev1.Node)) {
	o.t.Helper()
	n := o.objects[name]
	if n == nil {
		n = &corev1.Node{}
		n.Name = name
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: addr}}
		n.Status.Capacity, n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("1")},
			corev1.ResourceList{"cpu": resource.MustParse("1")}
		o.objects[name] = n
	}
	for _, c := range change {
		c(n)
	}
	o.version++
	n.ResourceVersion = fmt.Sprint(o.version)
	o.Set(Trim(n, o.resources))
}

// hold has a pod on a host take an address; none has it give it up.
func (o *offers) hold(addr, host string, state lease.State) {
	o.version++
	a := netip.MustParseAddr(addr)
	name, _ := o.index.Pools.PoolOf(a)
	l := lease.Lease{Addr: a, Version: uint64(o.version), State: state, Params: lease.Params{Pool: name, Bits: 16}}
	if state == lease.Active {
		l.Holder = lease.Holder{
			Host: netip.MustParseAddr(host), PodUID: "pod-" + addr, ContainerID: "c" + addr, IfName: "eth0",
		}
	}
	o.index.Feed.Watched(l)
}

// patched returns the patches after some time, applied to the nodes: "a=3" or "a=-" where the resource goes; of several
// resources the first.
func (o *offers) patched(after time.Duration) string {
	o.t.Helper()
	o.clock = o.clock.Add(after)
	var out []string
	for _, p := range o.due() {
		body, err := p.body().Data(nil)
		if err != nil {
			o.t.Fatal(err)
		}
		var said struct {
			Status struct {
				Capacity    map[corev1.ResourceName]*resource.Quantity `json:"capacity"`
				Allocatable map[corev1.ResourceName]*resource.Quantity `json:"allocatable"`
			} `json:"status"`
		}
		if err := json.Unmarshal(body, &said); err != nil {
			o.t.Fatal(err)
		}
		if diff := cmp.Diff(said.Status.Capacity, said.Status.Allocatable); diff != "" {
			o.t.Errorf("capacity and allocatable of %s:\n%s", body, diff)
		}
		text := p.node.name
		o.node(p.node.name, "", func(n *corev1.Node) {
			fields := map[string]any{}
			for _, name := range slices.Sorted(maps.Keys(said.Status.Capacity)) {
				q := said.Status.Capacity[name]
				if q == nil {
					delete(n.Status.Capacity, name)
					delete(n.Status.Allocatable, name)
					text += "=-"
					continue
				}
				n.Status.Capacity[name], n.Status.Allocatable[name] = *q, *q
				fields["f:"+string(name)] = map[string]any{}
				text += "=" + q.String()
			}
			raw, _ := json.Marshal(map[string]any{"f:status": map[string]any{"f:capacity": fields, "f:allocatable": fields}})
			entry := metav1.ManagedFieldsEntry{
				Manager: capacityManager, Subresource: "status", FieldsV1: metav1.NewFieldsV1(string(raw)),
			}
			n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Subresource: "status"}, entry}
		})
		p.node.full, p.node.few, p.node.known = p.full, p.few, true
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (o *offers) expect(what, want string, after time.Duration) {
	o.t.Helper()
	if got := o.patched(after); got != want {
		o.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestCapacity: a node publishes what its pools have, less what others hold; how soon it is patched.
func TestCapacity(t *testing.T) {
	o := newOffers(t, eniIP)
	o.node("a", "192.1.0.1")
	o.node("b", "192.1.0.2")
	o.node("c", "192.9.0.1")
	o.expect("without pools", "", 0)
	o.pool(1, 3)
	o.expect("a pool", "a=3 b=3", 0)
	o.expect("nothing new", "", time.Hour)
	o.hold("10.1.0.10", "192.1.0.1", lease.Active)
	o.expect("one on a", "b=2", 0)
	o.hold("10.1.0.11", "192.1.0.1", lease.Active)
	o.expect("two on a", "", 9*time.Second)
	o.expect("two on a, ten seconds later", "b=1", time.Second)
	o.hold("10.1.0.12", "192.1.0.1", lease.Active)
	o.expect("full", "b=0", time.Second)
	o.hold("10.1.0.12", "", lease.Available)
	o.expect("free again, at once", "", 0)
	o.expect("free again", "b=1", time.Second)
	o.hold("10.1.0.12", "192.1.0.2", lease.Active)
	o.expect("b has what it could have, a has less", "a=2", time.Second)
	o.hold("10.1.0.12", "", lease.Reserved)
	o.expect("set aside", "b=0", 10*time.Second)
	o.hold("10.1.0.12", "", lease.Available)
	o.expect("and back", "a=3 b=1", 10*time.Second)
	o.pool(1, 3, func(p *ipam.Pool) { p.Cordoned = true })
	o.expect("a cordoned pool", "a=2 b=0", 10*time.Second)
	o.pool(1, 3, func(p *ipam.Pool) { p.HostSubnets = nil })
	o.expect("no longer theirs", "b=-", 10*time.Second) // on a there are pods
	o.hold("10.1.0.10", "", lease.Available)
	o.hold("10.1.0.11", "", lease.Available)
	o.expect("the last pod has gone", "a=-", 10*time.Second)
	o.expect("nothing to do", "", time.Hour)
}

// TestCapacityPerHost: where a pool bounds what one host has, a node publishes no more than it may have; one that has
// as many as it may is patched at once.
func TestCapacityPerHost(t *testing.T) {
	o := newOffers(t, eniIP)
	o.pool(1, 9, func(p *ipam.Pool) { p.MaxPerHost = 2 })
	o.node("a", "192.1.0.1")
	o.node("b", "192.1.0.2")
	o.expect("two each", "a=2 b=2", 0)
	o.hold("10.1.0.10", "192.1.0.1", lease.Active)
	o.hold("10.1.0.11", "192.1.0.1", lease.Active)
	o.expect("a has two, and b may have two", "", time.Hour)
	if n := o.nodes["a"]; n.left != 0 || n.own != 2 || !n.full {
		t.Errorf("a has %d, and %d left", n.own, n.left)
	}
	o.pool(1, 9, func(p *ipam.Pool) { p.MaxPerHost = 1 })
	o.expect("one each; what a has it keeps", "b=1", 10*time.Second)
	o.hold("10.1.0.11", "", lease.Available)
	o.expect("a has one, as it may", "a=1", 10*time.Second)
	o.pool(2, 5, func(p *ipam.Pool) { p.HostSubnets = ipam.Networks{netip.MustParsePrefix("192.1.0.1/32"): {}} })
	o.expect("another pool without a bound", "a=6", 10*time.Second)
	o.pool(1, 9)
	o.expect("no bound any more", "a=14 b=8", 10*time.Second)
	o.pool(1, 2, func(p *ipam.Pool) { p.MaxPerHost = 9 })
	o.expect("fewer than one may have", "a=7 b=1", 10*time.Second)
}

// TestCapacityOfOthers: what others write to the resources is put right; what they do elsewhere is theirs.
func TestCapacityOfOthers(t *testing.T) {
	o := newOffers(t, eniIP)
	set := func(text string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Capacity[eniIP], n.Status.Allocatable[eniIP] = resource.MustParse(text), resource.MustParse(text)
		}
	}
	o.node("a", "192.1.0.1", set("7"))
	o.node("other", "192.9.0.1", set("7"))
	o.pool(1, 3)
	o.expect("somebody else's number", "a=3", 0)
	o.node("a", "", set("0")) // a kubelet that begins anew
	o.expect("set to zero", "", 0)
	o.expect("set to zero", "a=3", time.Second)
	o.node("a", "", func(n *corev1.Node) { delete(n.Status.Allocatable, eniIP) })
	o.expect("not allocatable", "a=3", 10*time.Second)
	o.node("a", "", func(n *corev1.Node) {
		n.UID = "made again"
		n.ManagedFields = nil
		delete(n.Status.Capacity, eniIP)
		delete(n.Status.Allocatable, eniIP)
	})
	o.expect("another node of its name", "a=3", 0)
	o.Remove(o.objects["a"])
	o.pool(1, 9)
	o.expect("it is gone", "", 0)
	if len(o.hosts) != 1 || len(o.nodes) != 1 {
		t.Errorf("%d hosts and %d nodes are known", len(o.hosts), len(o.nodes))
	}
}

// TestCapacityNames: other names replace those that were published before, and none removes them.
func TestCapacityNames(t *testing.T) {
	first := newOffers(t, eniIP)
	first.pool(1, 3)
	first.node("a", "192.1.0.1")
	first.expect("one name", "a=3", 0)
	second := newOffers(t, "example.com/address")
	second.pool(1, 3)
	second.objects, second.version = first.objects, first.version
	second.node("a", "")
	second.expect("another name", "a=3=-", 0)
	off := newOffers(t)
	off.pool(1, 3)
	off.objects, off.version = second.objects, second.version
	off.node("a", "")
	off.expect("no name", "a=-", 0)
	off.expect("nothing is left", "", time.Hour)
}

// TestCapacityIsBounded: an allocation changes the numbers of all other nodes of its pool. However many there are,
// each is told once in a minute while there are many addresses, no more than ten in a second when there are few, and
// a hundred when the pool is full or has addresses again.
func TestCapacityIsBounded(t *testing.T) {
	o := newOffers(t, eniIP)
	const nodes = 500
	for i := range nodes {
		o.node(fmt.Sprint("n", i), fmt.Sprintf("192.1.%d.%d", i/250, 1+i%250))
	}
	o.pool(1, 2000)
	patches := func(seconds int, before func(second int)) (n int) {
		for s := range seconds {
			before(s)
			for range 4 {
				n += len(strings.Fields(o.patched(capacityLook)))
			}
		}
		return n
	}
	if n := patches(10, func(int) {}); n != nodes {
		t.Errorf("%d patches at first, want %d", n, nodes)
	}
	// A minute of twenty allocations a second.
	n := patches(60, func(s int) {
		for i := range 20 {
			at := s*20 + i
			o.hold(fmt.Sprintf("10.1.%d.%d", (10+at)/256, (10+at)%256), "192.1.0.1", lease.Active)
		}
	})
	if n > nodes/4 {
		t.Errorf("%d patches in a minute of allocations, want at most %d", n, nodes/4)
	}
	const left = fewLeft - 6
	for i := 60 * 20; i < 2000-left; i++ {
		o.hold(fmt.Sprintf("10.1.%d.%d", (10+i)/256, (10+i)%256), "192.1.0.1", lease.Active)
	}
	n = patches(60, func(s int) {
		o.hold(fmt.Sprintf("10.1.%d.%d", (10+2000-left+s)/256, (10+2000-left+s)%256), "192.1.0.1", lease.Active)
	})
	if n > 61*capacityRate || n < 59*capacityRate {
		t.Errorf("%d patches in a minute of allocations when few addresses are left, want %d", n, 60*capacityRate)
	}
	for i := 2000 - left + 60; i < 2000; i++ {
		o.hold(fmt.Sprintf("10.1.%d.%d", (10+i)/256, (10+i)%256), "192.1.0.1", lease.Active)
	}
	if n := patches(6, func(int) {}); n != nodes-1 {
		t.Errorf("%d patches after the pool was full, want %d", n, nodes-1)
	}
	// Full and free again and again.
	n = patches(10, func(s int) { o.hold("10.1.0.10", "192.1.0.1", []lease.State{lease.Available, lease.Active}[s%2]) })
	if n > 10*capacityEdgeRate+capacityEdgeRate {
		t.Errorf("%d patches in ten seconds of edges, want at most %d", n, 11*capacityEdgeRate)
	}
}

// BenchmarkCapacity is a look of the leader after one allocation, with 5,000 nodes, 65,000 addresses of one pool and
// 20 held on each node of a rack.
func BenchmarkCapacity(b *testing.B) {
	o := newOffers(b, eniIP)
	o.pool(1, 65000)
	for i := range 5000 {
		o.node(fmt.Sprint("n", i), fmt.Sprintf("192.1.%d.%d", i/250, 1+i%250))
	}
	for i := range 5000 {
		o.hold(fmt.Sprintf("10.1.%d.%d", (10+i)/256, (10+i)%256), fmt.Sprintf("192.1.0.%d", 1+i%250), lease.Active)
	}
	o.patched(0)
	i := 0
	for b.Loop() {
		o.hold("10.1.200.1", "192.1.0.7", []lease.State{lease.Active, lease.Available}[i%2])
		o.due()
		i++
	}
}
