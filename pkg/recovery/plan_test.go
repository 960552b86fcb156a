package recovery

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

var (
	now    = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	onHost = netip.MustParseAddr("192.168.0.1")
)

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// aPod runs on the pools' host since an hour.
func aPod(name string, changes ...func(*workload.Pod)) workload.Pod {
	p := workload.Pod{
		Namespace: "shop", Name: name, UID: "u-" + name, Node: "n", HostIPs: []netip.Addr{onHost},
		Started: now.Add(-time.Hour),
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func has(ifName string, addrs ...string) func(*workload.Pod) {
	return func(p *workload.Pod) {
		for _, a := range addrs {
			p.Addrs, p.IfNames = append(p.Addrs, ip(a)), append(p.IfNames, ifName)
		}
	}
}

// on has a pod be on a node with other addresses.
func on(addrs ...string) func(*workload.Pod) {
	return func(p *workload.Pod) {
		p.HostIPs = nil
		for _, a := range addrs {
			p.HostIPs = append(p.HostIPs, ip(a))
		}
	}
}

// ofMachine makes a pod one of a virtual machine of KubeVirt.
func ofMachine(uid string) func(*workload.Pod) {
	return func(p *workload.Pod) {
		p.Controller = workload.Owner{Group: "kubevirt.io", Kind: "VirtualMachineInstance", Name: "vm", UID: uid}
	}
}

func TestMake(t *testing.T) {
	held := func(a, pod string) lease.Lease {
		return lease.Lease{Addr: ip(a), State: lease.Active, Params: lease.Params{Pool: "a", Bits: 24}, Holder: lease.Holder{
			ContainerID: "c-" + pod, IfName: "eth0", Namespace: "shop", PodName: pod, PodUID: "u-" + pod,
		}}
	}
	freed := func(a, pod string, until time.Time) lease.Lease {
		return lease.Lease{
			Addr: ip(a), Params: lease.Params{Pool: "a", Bits: 24},
			History: lease.NewHistory([]lease.Past{{Holder: "shop/" + pod, Until: until}}),
		}
	}
	passed := func(a, from, to string) lease.Lease {
		l := held(a, to)
		l.History = freed(a, from, now).History
		return l
	}
	deleting := func(p *workload.Pod) { p.Deleting = true }
	for name, tc := range map[string]struct {
		leases    []lease.Lease
		pods      []workload.Pod
		create    []string // address interface pod
		conflicts []string // address cause
		waiting   map[string][]string
		whole     map[string]time.Time
		doubtful  []string // addresses
		lost      []string
		change    func(*ipam.Pool) // of a
	}{
		"made after all leases were made again": {
			pods:    []workload.Pod{aPod("old"), aPod("new", func(p *workload.Pod) { p.Created = now.Add(time.Second) })},
			whole:   map[string]time.Time{"a": now},
			waiting: map[string][]string{"a": {"shop/old"}, "b": {"shop/new", "shop/old"}},
		},
		"all is well": {leases: []lease.Lease{held("10.0.0.10", "x")}, pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))}},
		"a lease is lost": {
			pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))}, create: []string{"10.0.0.10 eth0 x"},
		},
		"made anew and free":  {leases: []lease.Lease{{Addr: ip("10.0.0.10"), Params: lease.Params{Pool: "a"}}}, pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))}, create: []string{"10.0.0.10 eth0 x"}},
		"given up by the pod": {leases: []lease.Lease{freed("10.0.0.10", "x", now)}, pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))}},
		"given up in the second of its start": {
			leases: []lease.Lease{{Addr: ip("10.0.0.10"), Params: lease.Params{Pool: "a", Bits: 24},
				History: lease.NewHistory([]lease.Past{
					{Holder: "shop/x", Since: now.Add(-time.Hour), Until: now.Add(-time.Hour)}})}},
			pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))},
		},
		"given up in that second by one before it": {
			leases: []lease.Lease{{Addr: ip("10.0.0.10"), Params: lease.Params{Pool: "a", Bits: 24},
				History: lease.NewHistory([]lease.Past{
					{Holder: "shop/x", Since: now.Add(-2 * time.Hour), Until: now.Add(-time.Hour)}})}},
			pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))}, create: []string{"10.0.0.10 eth0 x"},
		},
		"given up by a pod with a long name": {leases: []lease.Lease{freed("10.0.0.10", strings.Repeat("long", 40), now)}, pods: []workload.Pod{aPod(strings.Repeat("long", 40), has("eth0", "10.0.0.10"))}},
		"given up by another":                {leases: []lease.Lease{freed("10.0.0.10", "y", now)}, pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))}, create: []string{"10.0.0.10 eth0 x"}},
		"given up by one before it":          {leases: []lease.Lease{freed("10.0.0.10", "x", now.Add(-2*time.Hour))}, pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))}, create: []string{"10.0.0.10 eth0 x"}},
		"in no pool":                         {pods: []workload.Pod{aPod("x", has("eth0", "172.16.0.1"))}},
		"of pods that do not count": {pods: []workload.Pod{
			aPod("host", has("eth0", "10.0.0.10"), func(p *workload.Pod) { p.HostNetwork = true }),
			aPod("ended", has("eth0", "10.0.0.11"), func(p *workload.Pod) { p.Ended = true }),
			aPod("nowhere", func(p *workload.Pod) { p.Node = "" }),
		}},
		"a pod that is being deleted, alone": {pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"), deleting)}},
		"a pod that is being deleted, among others": {
			pods:   []workload.Pod{aPod("x", has("eth0", "10.0.0.10"), deleting), aPod("y", has("eth0", "10.0.0.11"))},
			create: []string{"10.0.0.10 eth0 x", "10.0.0.11 eth0 y"},
		},
		"held by another": {
			leases: []lease.Lease{held("10.0.0.10", "y")}, pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))},
			conflicts: []string{"10.0.0.10 shop/y holds it"},
		},
		"held by another after it was given up": {
			leases: []lease.Lease{passed("10.0.0.10", "x", "y")}, pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))},
			conflicts: []string{"10.0.0.10 shop/y holds it"},
		},
		"held by another after it was given up by a pod that is being deleted": {
			leases: []lease.Lease{passed("10.0.0.10", "x", "y")},
			pods:   []workload.Pod{aPod("x", has("eth0", "10.0.0.10"), deleting)},
		},
		"reserved": {
			leases: []lease.Lease{{Addr: ip("10.0.0.10"), State: lease.Reserved, Params: lease.Params{Pool: "a"}}},
			pods:   []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))}, conflicts: []string{"10.0.0.10 it is reserved"},
		},
		"of a host that does not draw from the pool": {
			pods:      []workload.Pod{aPod("x", has("eth0", "10.0.0.10"), on("192.168.7.7"))},
			conflicts: []string{"10.0.0.10 the pool is not for its host 192.168.7.7"}, doubtful: []string{"10.0.0.10"},
		},
		"of a node that nobody knows": {
			pods:      []workload.Pod{aPod("x", has("eth0", "10.0.0.10"), on())},
			conflicts: []string{"10.0.0.10 no address of its node n is known"}, doubtful: []string{"10.0.0.10"},
		},
		"of a host that was taken out of the pool, which lost leases": {
			pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"), on("192.168.7.7"))},
			lost: []string{"a"}, create: []string{"10.0.0.10 eth0 x"},
		},
		"of a host that was taken out of the pool, and the pod's name had the address": {
			leases: []lease.Lease{freed("10.0.0.10", "x", now.Add(-2*time.Hour))},
			pods:   []workload.Pod{aPod("x", has("eth0", "10.0.0.10"), on("192.168.7.7"))}, create: []string{"10.0.0.10 eth0 x"},
		},
		"of another namespace than the pool's": {
			pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))}, doubtful: []string{"10.0.0.10"},
			change:    func(p *ipam.Pool) { p.Namespaces = map[string]struct{}{"bank": {}} },
			conflicts: []string{"10.0.0.10 it would not be given to it: pool a does not serve namespace shop"},
		},
		"of another namespace, to which the pool was bound since": {
			pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))}, lost: []string{"a"}, create: []string{"10.0.0.10 eth0 x"},
			change: func(p *ipam.Pool) { p.Namespaces = map[string]struct{}{"bank": {}} },
		},
		"of a pool that is cordoned": {
			pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))}, doubtful: []string{"10.0.0.10"},
			change: func(p *ipam.Pool) { p.Cordoned = true },
			conflicts: []string{"10.0.0.10 it would not be given to it: address 10.0.0.10 is in pool a, which allocates nothing:" +
				" it is cordoned"},
		},
		"beyond what a host may have": {
			leases: []lease.Lease{func() lease.Lease { l := held("10.0.0.11", "y"); l.Host = onHost; return l }()},
			pods:   []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))}, doubtful: []string{"10.0.0.10"},
			change: func(p *ipam.Pool) { p.MaxPerHost = 1 },
			conflicts: []string{"10.0.0.10 it would not be given to it: no available IP for pod shop/x: host " +
				"192.168.0.1 has 1 of the 1 addresses of pool a that one host may have"},
		},
		"one that is not believed reports it, too, and is older": {
			pods: []workload.Pod{
				aPod("x", has("eth0", "10.0.0.10"), on("192.168.7.7"), func(p *workload.Pod) { p.Started = now.Add(-9 * time.Hour) }),
				aPod("y", has("eth0", "10.0.0.10")),
			},
			conflicts: []string{"10.0.0.10 the pool is not for its host 192.168.7.7"}, doubtful: []string{"10.0.0.10"},
			create: []string{"10.0.0.10 eth0 y"},
		},
		"kept for a claim of another namespace": {
			leases: []lease.Lease{{
				Addr: ip("10.0.0.10"), State: lease.Reserved, Params: lease.Params{Pool: "a"},
				Retention: lease.Retention{Claim: "bank/x", Fixed: true},
			}},
			pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))}, doubtful: []string{"10.0.0.10"},
			conflicts: []string{"10.0.0.10 claim bank/x keeps it"},
		},
		"kept for another pod of its claim": {
			leases: []lease.Lease{{
				Addr: ip("10.0.0.10"), State: lease.Reserved, Params: lease.Params{Pool: "a"},
				Retention: lease.Retention{Claim: "shop/x", PodPrimaryKey: "x-1", Fixed: true},
			}},
			pods: []workload.Pod{aPod("x-0", has("eth0", "10.0.0.10"))}, doubtful: []string{"10.0.0.10"},
			conflicts: []string{"10.0.0.10 claim shop/x keeps it"},
		},
		"kept for a claim": {
			leases: []lease.Lease{{
				Addr: ip("10.0.0.10"), State: lease.Reserved, Params: lease.Params{Pool: "a"},
				Retention: lease.Retention{Claim: "shop/x", Fixed: true},
			}},
			pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))}, create: []string{"10.0.0.10 eth0 x"},
		},
		"kept for a claim since the pod gave it up": {
			leases: []lease.Lease{func() lease.Lease {
				l := freed("10.0.0.10", "x", now)
				l.State, l.Retention = lease.Reserved, lease.Retention{Claim: "shop/x", Fixed: true}
				return l
			}()},
			pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))},
		},
		"two report it": {
			pods:   []workload.Pod{aPod("x", has("eth0", "10.0.0.10")), aPod("y", has("eth0", "10.0.0.10"))},
			create: []string{"10.0.0.10 eth0 x"}, conflicts: []string{"10.0.0.10 shop/x reports it, too"},
		},
		"one that is being deleted reports it, too": {
			pods:   []workload.Pod{aPod("x", has("eth0", "10.0.0.10"), deleting), aPod("y", has("eth0", "10.0.0.10"))},
			create: []string{"10.0.0.10 eth0 y"}, conflicts: []string{"10.0.0.10 shop/y reports it, too"},
		},
		"one that started later reports it, too": {
			pods: []workload.Pod{
				aPod("x", has("eth0", "10.0.0.10"), func(p *workload.Pod) { p.Started = now }), aPod("y", has("eth0", "10.0.0.10")),
			},
			create: []string{"10.0.0.10 eth0 y"}, conflicts: []string{"10.0.0.10 shop/y reports it, too"},
		},
		"two pods of a machine": {
			pods:   []workload.Pod{aPod("x", has("eth0", "10.0.0.10"), ofMachine("m")), aPod("y", has("eth0", "10.0.0.10"), ofMachine("m"))},
			create: []string{"10.0.0.10 eth0 x"},
			conflicts: []string{
				"10.0.0.10 its virtual machine migrates, and shop/x of it has the address: rebuild again when that pod has ended",
			},
		},
		"pods of two machines": {
			pods:   []workload.Pod{aPod("x", has("eth0", "10.0.0.10"), ofMachine("m")), aPod("y", has("eth0", "10.0.0.10"), ofMachine("n"))},
			create: []string{"10.0.0.10 eth0 x"}, conflicts: []string{"10.0.0.10 shop/x reports it, too"},
		},
		"the pod holds another": {
			leases: []lease.Lease{held("10.0.0.11", "x")}, pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))},
			conflicts: []string{"10.0.0.10 the pod holds 10.0.0.11 on eth0"},
		},
		"both families":                    {pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10", "2001:db8::10"))}, create: []string{"10.0.0.10 eth0 x of 2", "2001:db8::10 eth0 x of 2"}},
		"two interfaces":                   {pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"), has("net1", "10.0.0.11"))}, create: []string{"10.0.0.10 eth0 x", "10.0.0.11 net1 x"}},
		"two of a family on one interface": {pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10", "10.0.0.11"))}, create: []string{"10.0.0.10 eth0 x", "10.0.0.11  x"}},
		"who has not told": {
			pods:    []workload.Pod{aPod("y"), aPod("x"), aPod("elsewhere", on(), func(p *workload.Pod) { p.Node = "m" })},
			waiting: map[string][]string{"a": {"shop/x", "shop/y"}, "b": {"shop/x", "shop/y"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := index.New()
			for pool, spec := range map[string]ipam.PlanSpec{
				"a": {Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.254", Available: []string{"10.0.0.10-10.0.0.20"}},
				"b": {Net: "2001:db8::", Mask: 64, Gateway: "2001:db8::1", Available: []string{"2001:db8::10-2001:db8::20"}},
			} {
				plan, err := ipam.NewPlan(spec)
				if err != nil {
					t.Fatal(err)
				}
				p := ipam.Pool{Name: pool, Network: "net", Plan: plan, Hosts: map[netip.Addr]struct{}{onHost: {}}}
				if pool == "b" { // the host may draw because of its subnet
					p.Hosts, p.HostSubnets = nil, ipam.Networks{netip.PrefixFrom(onHost, onHost.BitLen()-8).Masked(): {}}
				}
				if pool == "a" && tc.change != nil {
					tc.change(&p)
				}
				x.Pools.SetPool(p)
			}
			for i, l := range tc.leases {
				l.Version = uint64(i) + 1
				x.Feed.Watched(l)
			}
			got := Make(Input{
				Now: now, Index: x, Pods: slices.Values(tc.pods), Hosts: func(p workload.Pod) []netip.Addr { return p.HostIPs },
				RebuiltAt: tc.whole, Lost: func(pool string) bool { return slices.Contains(tc.lost, pool) },
			})
			hostOf := func(pod string) netip.Addr {
				return tc.pods[slices.IndexFunc(tc.pods, func(p workload.Pod) bool { return p.Name == pod })].HostIPs[0]
			}
			var create, conflicts, doubtful []string
			for _, l := range got.Doubtful {
				doubtful = append(doubtful, l.Addr.String())
			}
			for _, l := range got.Create {
				text := l.Addr.String() + " " + l.IfName + " " + l.PodName
				if l.SetSize == 2 {
					text += " of 2"
				}
				create = append(create, text)
				if l.State != lease.Active || !l.HeldFinalizer || l.Host != hostOf(l.PodName) || l.PodUID != "u-"+l.PodName ||
					l.ContainerID != "" || l.Gateway == (netip.Addr{}) ||
					!l.Updated.Equal(now) || !l.StartedAt.Equal(now) {
					t.Errorf("lease %+v", l)
				}
			}
			for _, c := range got.Conflicts {
				conflicts = append(conflicts, c.Addr.String()+" "+c.Cause)
			}
			for what, diff := range map[string]string{
				"create":    cmp.Diff(tc.create, create),
				"conflicts": cmp.Diff(tc.conflicts, conflicts),
				"doubtful":  cmp.Diff(tc.doubtful, doubtful),
				"waiting":   cmp.Diff(tc.waiting, got.Waiting, cmpopts.EquateEmpty()),
			} {
				if diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

// TestMakeBesideGroup: an address that a group has not taken from its parent yet was the parent's, and is so again; the
// others of its range are its own.
func TestMakeBesideGroup(t *testing.T) {
	x := index.New()
	for name, available := range map[string]string{"blue": "10.0.0.10-10.0.0.99", "eng": "10.0.0.20-10.0.0.29"} {
		plan, err := ipam.NewPlan(ipam.PlanSpec{Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.254", Available: []string{available}})
		if err != nil {
			t.Fatal(err)
		}
		p := ipam.Pool{Name: name, Plan: plan, Hosts: map[netip.Addr]struct{}{onHost: {}}}
		if name == "eng" {
			var b netipx.IPSetBuilder
			b.Add(ip("10.0.0.21"))
			p.Parent = "blue"
			if p.Carved, err = b.IPSet(); err != nil {
				t.Fatal(err)
			}
		}
		x.Pools.SetPool(p)
	}
	pods := []workload.Pod{
		aPod("of-both", has("eth0", "10.0.0.10")), aPod("withheld", has("eth0", "10.0.0.20")),
		aPod("handed-over", has("eth0", "10.0.0.21")),
	}
	got := map[string]string{}
	for _, l := range Make(Input{
		Now: now, Index: x, Pods: slices.Values(pods), Hosts: func(p workload.Pod) []netip.Addr { return p.HostIPs },
		Lost: func(pool string) bool { return pool == "blue" },
	}).Create {
		got[l.Addr.String()] = l.Pool
	}
	want := map[string]string{"10.0.0.10": "blue", "10.0.0.20": "blue", "10.0.0.21": "eng"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("leases by their pools (-want +got):\n%s", diff)
	}
}
