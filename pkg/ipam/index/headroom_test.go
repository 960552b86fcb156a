package index

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// What nobody has is headroom, and what is kept for claims; not what an operator set aside, nor what rests.
func TestSpares(t *testing.T) {
	for name, tc := range map[string]struct {
		options []option
		leases  []lease.Lease
		want    ipam.Headroom
	}{
		"an empty pool": {want: ipam.Headroom{Free: 6}},
		"some of all kinds": {
			leases: []lease.Lease{
				leased("10.0.0.9", "a", 1), reserved("10.0.0.10", "a", 2), keptFor("10.0.0.11", "a", "", "", 3),
			},
			want: ipam.Headroom{Free: 3, Retained: 1},
		},
		"one rests":               {options: []option{coolFor(1 << 40)}, leases: []lease.Lease{gaveUp("10.0.0.9", "a", 1, -1)}, want: ipam.Headroom{Free: 5}},
		"cordoned":                {options: []option{cordoned}, leases: []lease.Lease{keptFor("10.0.0.11", "a", "", "", 3)}, want: ipam.Headroom{Retained: 1}},
		"going":                   {options: []option{terminating}, leases: []lease.Lease{keptFor("10.0.0.11", "a", "", "", 3)}, want: ipam.Headroom{}},
		"kept, and no longer its": {leases: []lease.Lease{keptFor("10.0.0.99", "a", "", "", 3)}, want: ipam.Headroom{Free: 6}},
		"of a network":            {options: []option{network("blue")}, want: ipam.Headroom{Network: "blue", Free: 6}},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.9-10.0.0.14"}, tc.options...))
			for i, l := range tc.leases {
				l.Version = uint64(i + 1)
				x.Feed.Watched(l)
			}
			if diff := cmp.Diff(map[string]ipam.Headroom{"a": tc.want}, x.Headrooms(now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.9"}, problem("wrong")))
	if got := x.Headrooms(now); len(got) > 0 {
		t.Errorf("a pool that cannot be used has %v", got)
	}
}

func TestRoom(t *testing.T) {
	v4, v6 := ipam.Headroom{Free: 5, Retained: 1}, ipam.Headroom{Family: ipaddr.IPv6, Free: 1 << 40}
	in := func(network string, s ipam.Headroom) ipam.Headroom { s.Network = network; return s }
	for name, tc := range map[string]struct {
		pools []ipam.Headroom
		want  uint64
	}{
		"none":                     {nil, 0},
		"two pools":                {[]ipam.Headroom{v4, v4}, 12},
		"both families together":   {[]ipam.Headroom{in("blue", v4), in("blue", v6)}, 6},
		"one family is full":       {[]ipam.Headroom{in("blue", v4), in("blue", ipam.Headroom{Family: ipaddr.IPv6})}, 0},
		"two pools of a network":   {[]ipam.Headroom{in("blue", v4), in("blue", v4), in("blue", v6)}, 12},
		"two networks, and no one": {[]ipam.Headroom{in("blue", v4), in("red", v4), v4}, 18},
		"more than can be counted": {[]ipam.Headroom{{Free: math.MaxUint64, Retained: 9}, {Free: math.MaxUint64}}, math.MaxUint64},
	} {
		if got := ipam.Room(tc.pools); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestPoolsOfNames(t *testing.T) {
	x := indexOf(
		pool(t, "a", "10.0.0.0/24", []string{"10.0.0.9"}), pool(t, "b", "10.0.1.0/24", []string{"10.0.1.9"}, priority(1)),
		pool(t, "bank", "10.0.2.0/24", []string{"10.0.2.9"}, namespaces("bank"), hosts(), hostSubnets("192.168.0.0/16")),
		pool(t, "other", "10.0.3.0/24", []string{"10.0.3.9"}, hosts(host2)),
	)
	if got := x.Pools.PoolsOf(ip(host1)); !slices.Equal(got, []string{"b", "a", "bank"}) {
		t.Errorf("%v", got)
	}
	before := x.Pools.PlansRevision()
	x.Pools.SetRebuilding("a", "")
	if x.Pools.PlansRevision() != before {
		t.Error("nothing has changed")
	}
	x.Pools.SetPool(pool(t, "bank", "10.0.2.0/24", []string{"10.0.2.9"}, namespaces("bank"), hosts(host2)))
	x.Pools.RemovePool("a")
	if got := x.Pools.PoolsOf(ip(host1)); !slices.Equal(got, []string{"b"}) || x.Pools.PlansRevision() == before {
		t.Errorf("%v", got)
	}
}

// TestPodsOn: a pod with two addresses is one; owners that are no pods are none.
func TestPodsOn(t *testing.T) {
	x := indexOf()
	hold := func(addr string, change func(*lease.Lease)) {
		l := leased(addr, "a", uint64(x.Leases.Len()+1))
		change(&l)
		x.Feed.Watched(l)
	}
	hold("10.0.0.1", func(l *lease.Lease) { l.PodUID = "u1" })
	hold("10.0.0.2", func(l *lease.Lease) { l.PodUID, l.IfName = "u1", "eth1" })
	hold("10.0.0.3", func(l *lease.Lease) { l.PodUID, l.ContainerID = "", "c3" })
	hold("10.0.0.4", func(l *lease.Lease) { l.Owner, l.PodUID = "printer", "" })
	hold("10.0.0.5", func(l *lease.Lease) { l.PodUID, l.Host = "u5", ip(host2) })
	hold("10.0.0.6", func(l *lease.Lease) { l.PodUID, l.Host = "u6", ip("172.16.0.9") })
	hold("10.0.0.7", func(l *lease.Lease) { l.State, l.PodUID = lease.Reserved, "u7" })
	if got := x.Leases.PodsOn([]netip.Addr{ip(host1), ip(host2)}); got != 3 {
		t.Errorf("%d pods, want 3", got)
	}
}

// TestProposeHoldsNothing, and leaves what is promised to others.
func TestProposeHoldsNothing(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.9-10.0.0.12"}))
	promised := map[netip.Addr]bool{}
	for i := range 5 {
		w := want(func(w *ipam.PickRequest) {
			w.Promised, w.Key = func(a netip.Addr) bool { return promised[a] }, fmt.Sprint(i)
		})
		picks, refusal := x.Propose(w, now)
		if i == 4 {
			if refusal == nil || refusal.Reason != ipam.ReasonPoolExhausted {
				t.Errorf("all are promised: %v, %s", picked(picks), refused(refusal))
			}
			break
		}
		if refusal != nil || len(picks) != 1 || promised[picks[0].Current.Addr] {
			t.Fatalf("%v, %s", picked(picks), refused(refusal))
		}
		promised[picks[0].Current.Addr] = true
	}
	if got := x.Headrooms(now)["a"].Free; got != 4 {
		t.Errorf("%d are free, want 4", got)
	}
	w := want(func(w *ipam.PickRequest) {
		w.Promised, w.Sets = func(a netip.Addr) bool { return a == ip("10.0.0.9") },
			append(w.Sets, mustSet(t, "10.0.0.9-10.0.0.10"))
	})
	if picks, refusal := x.Propose(w, now); refusal != nil || picks[0].Current.Addr != ip("10.0.0.10") {
		t.Errorf("of a range: %v, %s", picked(picks), refused(refusal))
	}
}
