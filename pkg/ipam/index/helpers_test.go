package index

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// now is the time of tests; at is so many seconds later.
var now = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func at(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }

// equal compares what go-cmp cannot look into.
var equal = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
	cmp.Comparer(func(a, b *netipx.IPSet) bool { return a == b || a != nil && b != nil && a.Equal(b) }),
}

// leaseDiff says how leases, or what holds them, differ. It is quick where they do not.
func leaseDiff[T any](want, got T) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, equal, cmpopts.EquateEmpty())
}

// message is the text of an error, empty for none.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

func ips(list ...string) (out []netip.Addr) {
	for _, s := range list {
		out = append(out, ip(s))
	}
	return out
}

func mustRange(t testing.TB, s string) netipx.IPRange {
	t.Helper()
	r, err := ipaddr.ParseRange(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustSet(t testing.TB, entries ...string) *netipx.IPSet {
	t.Helper()
	var ranges []netipx.IPRange
	for _, e := range entries {
		ranges = append(ranges, mustRange(t, e))
	}
	return ipaddr.SetOf(ranges...)
}

const (
	host1 = "192.168.0.1"
	host2 = "192.168.0.2"
)

// option changes a pool of a test.
type option func(*ipam.Pool)

// pool makes a pool of host1 with the first address after the network's own as gateway.
func pool(t testing.TB, name, subnet string, available []string, options ...option) ipam.Pool {
	t.Helper()
	prefix := netip.MustParsePrefix(subnet)
	plan := newPlan(t, ipam.PlanSpec{
		Net: prefix.Addr().String(), Mask: prefix.Bits(), Gateway: prefix.Addr().Next().String(), Available: available,
	})
	p := ipam.Pool{Name: name, Created: now, Plan: plan, Hosts: map[netip.Addr]struct{}{ip(host1): {}}}
	for _, o := range options {
		o(&p)
	}
	return p
}

func newPlan(t testing.TB, s ipam.PlanSpec) ipam.Plan {
	t.Helper()
	p, err := ipam.NewPlan(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func hosts(list ...string) option {
	return func(p *ipam.Pool) {
		p.Hosts = map[netip.Addr]struct{}{}
		for _, h := range list {
			p.Hosts[ip(h)] = struct{}{}
		}
	}
}

func hostSubnets(list ...string) option {
	return func(p *ipam.Pool) {
		p.HostSubnets = ipam.Networks{}
		for _, n := range list {
			p.HostSubnets[netip.MustParsePrefix(n)] = struct{}{}
		}
	}
}

// oneLabel is a selector of one label, such as rack=7.
type oneLabel string

func (l oneLabel) Matches(labels map[string]string) bool {
	key, value, _ := strings.Cut(string(l), "=")
	return labels[key] == value
}

func (l oneLabel) String() string { return string(l) }

func hostSelector(label string) option {
	return func(p *ipam.Pool) { p.HostSelector = oneLabel(label) }
}

// node returns a node whose addresses are all InternalIPs.
func node(addrs ...string) ipam.Node { return ipam.Node{Addrs: ips(addrs...), Internal: ips(addrs...)} }

// inRack returns a node with a label.
func inRack(rack string, addrs ...string) ipam.Node {
	n := node(addrs...)
	n.Labels = map[string]string{"rack": rack}
	return n
}

func namespaces(list ...string) option {
	return func(p *ipam.Pool) {
		p.Namespaces = map[string]struct{}{}
		for _, ns := range list {
			p.Namespaces[ns] = struct{}{}
		}
	}
}

func network(name string) option { return func(p *ipam.Pool) { p.Network = name } }

func priority(n int32) option { return func(p *ipam.Pool) { p.Priority = n } }

func created(seconds int) option { return func(p *ipam.Pool) { p.Created = at(seconds) } }

func problem(what string) option { return func(p *ipam.Pool) { p.Problem = what } }

func perHost(n int) option { return func(p *ipam.Pool) { p.MaxPerHost = n } }

func generation(n int64) option { return func(p *ipam.Pool) { p.Generation = n } }

func cordoned(p *ipam.Pool) { p.Cordoned = true }

func terminating(p *ipam.Pool) { p.Terminating = true }

func indexOf(pools ...ipam.Pool) *Index {
	x := New()
	for _, p := range pools {
		x.Pools.SetPool(p)
	}
	return x
}

// leased is an address of a pool held by a pod on host1.
func leased(addr, pool string, version uint64) lease.Lease {
	return lease.Lease{
		Addr: ip(addr), Version: version, State: lease.Active, Params: lease.Params{Pool: pool, Bits: 24},
		Holder: lease.Holder{
			Host: ip(host1), ContainerID: "container-of-" + addr, IfName: lease.DefaultIfName,
			Namespace: "shop", PodName: "pod-of-" + addr, PodUID: "uid-of-" + addr,
		},
		Updated: now, HeldFinalizer: true,
	}
}

// available is an object that nobody holds.
func available(addr, pool string, version uint64) lease.Lease {
	return lease.Lease{Addr: ip(addr), Version: version, Params: lease.Params{Pool: pool, Bits: 24}}
}

func reserved(addr, pool string, version uint64) lease.Lease {
	l := available(addr, pool, version)
	l.State, l.HeldFinalizer = lease.Reserved, true
	return l
}

// take has a pod hold each of the given addresses of a pool.
func (x *Index) take(pool string, addrs ...string) {
	for _, a := range addrs {
		x.Feed.Watched(leased(a, pool, x.Feed.Seen()+1))
	}
}

// want is a request of a pod on host1.
func want(options ...func(*ipam.PickRequest)) ipam.PickRequest {
	w := ipam.PickRequest{Host: ip(host1), Namespace: "shop", Key: "key", Who: "pod shop/a"}
	for _, o := range options {
		o(&w)
	}
	return w
}

func asking(addrs ...string) func(*ipam.PickRequest) {
	return func(w *ipam.PickRequest) { w.Addrs = ips(addrs...) }
}

func having(leases ...lease.Lease) func(*ipam.PickRequest) {
	return func(w *ipam.PickRequest) { w.Have = leases }
}

func ofNetwork(name string) func(*ipam.PickRequest) {
	return func(w *ipam.PickRequest) { w.Network = name }
}

func inNamespace(name string) func(*ipam.PickRequest) {
	return func(w *ipam.PickRequest) { w.Namespace = name }
}

func onHost(host string) func(*ipam.PickRequest) {
	return func(w *ipam.PickRequest) { w.Host = ip(host) }
}

// picked are the pools and addresses of picks, as "pool address".
func picked(picks []ipam.Pick) (out []string) {
	for _, p := range picks {
		out = append(out, p.Pool.Name+" "+p.Current.Addr.String())
	}
	return out
}

// refused is the text of a refusal with its reason, empty for none.
func refused(r *ipam.Refusal) string {
	if r == nil {
		return ""
	}
	return string(r.Reason) + ": " + r.Error()
}

// pickCase is a request of an index with some pools and leases, and what comes of it: picks, or the text of a refusal.
type pickCase struct {
	pools  []ipam.Pool
	leases []lease.Lease
	before func(*Index)
	want   ipam.PickRequest
	picks  []string
	text   string
}

func (tc pickCase) check(t *testing.T) {
	x := indexOf(tc.pools...)
	for i, l := range tc.leases {
		l.Version = uint64(i) + 1
		x.Feed.Watched(l)
	}
	if tc.before != nil {
		tc.before(x)
	}
	picks, refusal := x.Pick(tc.want, now)
	if got := refused(refusal); got != tc.text {
		t.Errorf("refused:\n got %s\nwant %s", got, tc.text)
	}
	if diff := cmp.Diff(tc.picks, picked(picks), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("picks (-want +got):\n%s", diff)
	}
}
