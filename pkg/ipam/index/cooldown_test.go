package index

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

func coolFor(d time.Duration) option { return func(p *ipam.Pool) { p.Cooldown = d } }

// gaveUp is an address that a pod, or whoever is named, gave up after so many seconds.
func gaveUp(addr, pool string, version uint64, seconds int) lease.Lease {
	l, _ := lease.Release(leased(addr, pool, version), at(seconds), lease.Change{})
	return l
}

// An address is free at the very moment that its rest ends, and not before.
func TestPickLetsAddressesRest(t *testing.T) {
	entry := []string{"10.0.0.8"}
	p := pool(t, "a", "10.0.0.0/24", entry, coolFor(30*time.Second))
	cold := gaveUp("10.0.0.8", "a", 7, 10)
	ends := at(40)
	const exhausted = "PoolExhausted: no available IP for pod shop/a: pool a (10.0.0.0/24) has 0 of 1 addresses free, 0 " +
		"active, 0 reserved"
	const cooling = "AddressCooling: address 10.0.0.8 of pool a is cooling after shop/pod-of-10.0.0.8: it is free in " +
		"%s; hint: ask for another address, or ask again in %s"
	holder := func(who string) func(*ipam.PickRequest) { return func(w *ipam.PickRequest) { w.Holder = who } }
	for name, tc := range map[string]struct {
		change func(x *Index)
		want   ipam.PickRequest
		now    time.Time
		text   string
	}{
		"just given up": {want: want(), now: at(10), text: exhausted + ", 1 is cooling and free in 30s; hint: ask again in 30s, or add addresses: bcsnetctl pool add-ip a RANGE"},
		"a nanosecond before": {
			want: want(), now: ends.Add(-1),
			text: exhausted +
				", 1 is cooling and free in 1s; hint: ask again in 1s, or add addresses: bcsnetctl pool add-ip a RANGE",
		},
		"in time":                            {want: want(), now: ends},
		"later":                              {want: want(), now: ends.Add(time.Hour)},
		"by name":                            {want: want(asking("10.0.0.8")), now: at(28), text: fmt.Sprintf(cooling, "12s", "12s")},
		"by name, by another":                {want: want(asking("10.0.0.8"), holder("shop/other")), now: at(28), text: fmt.Sprintf(cooling, "12s", "12s")},
		"by name, by the one who had it":     {want: want(asking("10.0.0.8"), holder("shop/pod-of-10.0.0.8")), now: at(28)},
		"not by name, by the one who had it": {want: want(holder("shop/pod-of-10.0.0.8")), now: at(28), text: exhausted + ", 1 is cooling and free in 12s; hint: ask again in 12s, or add addresses: bcsnetctl pool add-ip a RANGE"},
		"the same interface of the same pod": {want: want(lastHolder("uid-of-10.0.0.8", "eth0")), now: at(10)},
		"the same by name":                   {want: want(lastHolder("uid-of-10.0.0.8", "eth0"), asking("10.0.0.8")), now: at(10)},
		"another pod of its UID": {want: want(lastHolder("uid-of-10.0.0.8", "eth0"), holder("shop/other")), now: at(10), text: exhausted +
			", 1 is cooling and free in 30s; hint: ask again in 30s, or add addresses: bcsnetctl pool add-ip a RANGE"},
		"another interface of the pod": {want: want(lastHolder("uid-of-10.0.0.8", "net1")), now: at(10), text: exhausted +
			", 1 is cooling and free in 30s; hint: ask again in 30s, or add addresses: bcsnetctl pool add-ip a RANGE"},
		"the next pod of the name": {want: want(lastHolder("u2", "eth0"), holder("shop/pod-of-10.0.0.8")), now: at(28), text: exhausted +
			", 1 is cooling and free in 12s; hint: ask again in 12s, or add addresses: bcsnetctl pool add-ip a RANGE"},
		"the same pod, of a cordoned pool": {
			change: func(x *Index) { x.Pools.SetPool(pool(t, "a", "10.0.0.0/24", entry, coolFor(30*time.Second), cordoned)) },
			want:   want(lastHolder("uid-of-10.0.0.8", "eth0")), now: at(10),
			text: "PoolCordoned: no available IP for pod shop/a: pool a is cordoned; hint: let it allocate addresses again: bcsnetctl pool uncordon a",
		},
		"by name, in time":                       {want: want(asking("10.0.0.8")), now: ends},
		"the cooldown is taken away":             {change: func(x *Index) { x.Pools.SetPool(pool(t, "a", "10.0.0.0/24", entry)) }, want: want(), now: at(11)},
		"the cooldown gets shorter":              {change: func(x *Index) { x.Pools.SetPool(pool(t, "a", "10.0.0.0/24", entry, coolFor(time.Second))) }, want: want(), now: at(11)},
		"the cooldown gets longer, after a look": {change: longer(t, entry), want: want(asking("10.0.0.8")), now: at(41), text: fmt.Sprintf(cooling, "1m29s", "1m29s")},
		"the pool comes after the address": {change: func(x *Index) {
			x.Pools.RemovePool("a")
			x.Pools.SetPool(p)
		}, want: want(asking("10.0.0.8")), now: at(28), text: fmt.Sprintf(cooling, "12s", "12s")},
		"the pool that has it now decides": {change: func(x *Index) {
			x.Pools.RemovePool("a")
			x.Pools.SetPool(pool(t, "b", "10.0.0.0/24", entry))
		}, want: want(), now: at(11)},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(p)
			x.Feed.Watched(cold)
			if tc.change != nil {
				tc.change(x)
			}
			picks, refusal := x.Pick(tc.want, tc.now)
			if diff := cmp.Diff(tc.text, refused(refusal)); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
			if len(picks) == 1 != (tc.text == "") {
				t.Errorf("picks %v", picked(picks))
			}
			checkFreeSets(t, x)
		})
	}
}

// lastHolder is a request of an interface of a pod.
func lastHolder(uid, ifName string) func(*ipam.PickRequest) {
	return func(w *ipam.PickRequest) { w.PodUID, w.IfName = uid, ifName }
}

// A pod gets back what it had last while that cools, also where another address is free, and of each family. One that
// somebody else had since is not its own any more, nor one at which somebody else answered.
func TestPickReturnsToTheLastHolder(t *testing.T) {
	cools := coolFor(time.Hour)
	four := pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.12"}, cools, network("blue"))
	six := pool(t, "a6", "2001:db8::/64", []string{"2001:db8::8-2001:db8::c"}, cools, network("blue"))
	other := pool(t, "b", "10.0.1.0/24", []string{"10.0.1.8-10.0.1.12"}, cools, priority(9))
	had := func(addr, pool string, version uint64, seconds int, change lease.Change) lease.Lease {
		l := leased(addr, pool, version)
		l.PodUID, l.PodName = "u1", "web"
		l, _ = lease.Release(l, at(seconds), change)
		return l
	}
	mine := func(addr, pool string, version uint64, seconds int) lease.Lease {
		return had(addr, pool, version, seconds, lease.Change{})
	}
	for name, tc := range map[string]struct {
		leases []lease.Lease
		want   ipam.PickRequest
		not    bool
		picks  []string
	}{
		"one": {
			leases: []lease.Lease{mine("10.0.0.9", "a", 1, 10), mine("2001:db8::9", "a6", 2, 10)},
			want:   want(lastHolder("u1", "eth0")), picks: []string{"a 10.0.0.9", "a6 2001:db8::9"},
		},
		"the one given up last": {
			leases: []lease.Lease{mine("10.0.0.9", "a", 1, 10), mine("10.0.0.11", "a", 2, 20), mine("2001:db8::9", "a6", 3, 10)},
			want:   want(lastHolder("u1", "eth0")), picks: []string{"a 10.0.0.11", "a6 2001:db8::9"},
		},
		"of the pool that is asked for": {
			leases: []lease.Lease{mine("10.0.0.9", "a", 1, 10), mine("10.0.1.11", "b", 2, 5)},
			want:   want(lastHolder("u1", "eth0"), func(w *ipam.PickRequest) { w.Pools = []string{"b"} }), picks: []string{"b 10.0.1.11"},
		},
		"set aside and back by hand": {
			leases: []lease.Lease{func() lease.Lease {
				l, _ := lease.Reserve(mine("10.0.1.9", "b", 1, 10), lease.Params{Pool: "b", Bits: 24}, at(12), lease.Change{Verb: lease.VerbReserve, By: "ann"})
				l, _ = lease.Release(l, at(14), lease.Change{Verb: lease.VerbUnreserve, By: "ann"})
				return l
			}()},
			want: want(lastHolder("u1", "eth0")), picks: []string{"b 10.0.1.9"},
		},
		"another's since": {
			leases: []lease.Lease{func() lease.Lease {
				l, _ := lease.Bind(mine("10.0.0.9", "a", 1, 10), lease.Params{Pool: "a", Bits: 24}, leased("10.0.0.9", "a", 1).Holder, lease.Retention{}, at(12))
				l, _ = lease.Release(l, at(14), lease.Change{})
				return l
			}()},
			want: want(lastHolder("u1", "eth0")), not: true, picks: []string{"a 10.0.0.9"},
		},
		"somebody else answers for it": {
			leases: []lease.Lease{had("10.0.0.9", "a", 1, 10, lease.Change{Verb: lease.VerbConflict, By: "02:00:5e:10:00:01"})},
			want:   want(lastHolder("u1", "eth0")), not: true, picks: []string{"a 10.0.0.9"},
		},
		"not one of the addresses it may have": {
			leases: []lease.Lease{mine("10.0.0.9", "a", 1, 10)},
			want:   want(lastHolder("u1", "eth0"), among("10.0.0.10")), picks: []string{"a 10.0.0.10"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(four, six, other)
			for _, l := range tc.leases {
				x.Feed.Watched(l)
			}
			picks, refusal := x.Pick(tc.want, at(20))
			if refusal != nil {
				t.Fatal(refusal)
			}
			if same := cmp.Equal(tc.picks, picked(picks)); same == tc.not {
				t.Errorf("picks %v, want %v: %t", picked(picks), tc.picks, !tc.not)
			}
			checkFreeSets(t, x)
		})
	}
}

// longer is a cooldown that is raised after somebody has seen the address free.
func longer(t *testing.T, entry []string) func(*Index) {
	t.Helper()
	return func(x *Index) {
		x.Pools.Counts("a", at(41))
		x.Pools.SetPool(pool(t, "a", "10.0.0.0/24", entry, coolFor(2*time.Minute)))
	}
}

// A release that was told before its end was, as in a list, rests from the later one.
func TestRestBeginsAgain(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8"}, coolFor(30*time.Second)))
	x.Feed.Watched(gaveUp("10.0.0.8", "a", 1, 0))
	x.Feed.Replace([]lease.Lease{gaveUp("10.0.0.8", "a", 3, 20)}, 3)
	for _, tc := range []struct {
		seconds int
		free    uint64
	}{{29, 0}, {30, 0}, {49, 0}, {50, 1}} {
		if got := x.Pools.Counts("a", at(tc.seconds)); got.Free != tc.free || got.Cooling != 1-tc.free {
			t.Errorf("after %d seconds: %+v", tc.seconds, got)
		}
		checkFreeSets(t, x)
	}
}

// A pool goes on with addresses that have rested, and counts the others apart, the next one first.
func TestCountsOfCooling(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.12"}, coolFor(30*time.Second)))
	for i, seconds := range []int{20, 10, 15} { // not in the order of their releases
		x.Feed.Watched(gaveUp(fmt.Sprintf("10.0.0.%d", 8+i), "a", x.Feed.Seen()+1, seconds))
	}
	x.take("a", "10.0.0.11")
	x.Pools.SetNode("node-1", node("10.0.0.10")) // which keeps it whatever it rests
	for _, tc := range []struct {
		seconds       int
		free, cooling uint64
		next          time.Time
	}{
		{20, 1, 2, at(40)}, {39, 1, 2, at(40)}, {40, 2, 1, at(50)}, {49, 2, 1, at(50)}, {50, 3, 0, time.Time{}}, {99, 3, 0, time.Time{}},
	} {
		want := ipam.PoolCounts{
			Capacity: 5, Served: 5, Free: tc.free, Cooling: tc.cooling, NextFree: tc.next, Objects: 4, Active: 1,
		}
		if diff := cmp.Diff(want, x.Pools.Counts("a", at(tc.seconds))); diff != "" {
			t.Errorf("after %d seconds (-want +got):\n%s", tc.seconds, diff)
		}
	}
}

// An address that is set aside and back all the time does not pile up ends of its rest.
func TestRestsDoNotPileUp(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8"}, coolFor(time.Hour)))
	x.Feed.Watched(gaveUp("10.0.0.8", "a", 1, 1))
	for i := range 10_000 {
		x.Pools.SetNode("node-1", node("10.0.0.8"))
		x.Pools.SetNode("node-1", ipam.Node{})
		if i%1000 == 0 {
			checkFreeSets(t, x)
		}
	}
	if got := x.Pools.Counts("a", at(1)); got.Cooling != 1 || !got.NextFree.Equal(at(3601)) {
		t.Errorf("counts %+v", got)
	}
}
