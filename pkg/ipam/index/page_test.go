package index

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// paged is an index of so many addresses from 10.0.0.0 on: a half is in use, by pods of seven namespaces on five hosts.
func paged(n int) *Index {
	x := New()
	a := netip.MustParseAddr("10.0.0.0")
	for i := range n {
		l := lease.Lease{Addr: a, Version: uint64(i + 1), Params: lease.Params{Pool: fmt.Sprint("pool-", i%3), Bits: 8}}
		if i%2 == 0 {
			l.State = lease.Active
			l.Holder = lease.Holder{
				Host: netip.AddrFrom4([4]byte{192, 0, 2, byte(i % 5)}), ContainerID: fmt.Sprintf("%064x", i/4),
				IfName: lease.DefaultIfName, Namespace: fmt.Sprint("ns-", i%7), PodName: fmt.Sprint("pod-", i),
			}
		}
		x.Feed.Watched(l)
		a = a.Next()
	}
	return x
}

// The pages of a list follow one another without gaps and have what looking at every entry finds.
func TestPage(t *testing.T) {
	x := paged(3000)
	host := netip.AddrFrom4([4]byte{192, 0, 2, 2})
	for name, c := range map[string]struct {
		filter Filter
		match  func(lease.Lease) bool
	}{
		"all":       {Filter{}, func(lease.Lease) bool { return true }},
		"namespace": {Filter{Namespace: "ns-3"}, func(l lease.Lease) bool { return l.Namespace == "ns-3" }},
		"pod":       {Filter{Namespace: "ns-4", PodName: "pod-4"}, func(l lease.Lease) bool { return l.PodName == "pod-4" }},
		"status":    {Filter{Status: "Available"}, func(l lease.Lease) bool { return l.State == lease.Available }},
		"pool":      {Filter{Pool: "pool-1", Status: "Active"}, func(l lease.Lease) bool { return l.Pool == "pool-1" && l.State == lease.Active }},
		"host":      {Filter{Host: host, Pool: "pool-2"}, func(l lease.Lease) bool { return l.Host == host && l.Pool == "pool-2" }},
		"container": {Filter{ContainerID: fmt.Sprintf("%064x", 7)}, func(l lease.Lease) bool { return l.ContainerID == fmt.Sprintf("%064x", 7) }},
		"interface": {Filter{ContainerID: fmt.Sprintf("%064x", 7), IfName: "net1"}, func(lease.Lease) bool { return false }},
		"nobody":    {Filter{Owner: "nobody"}, func(lease.Lease) bool { return false }},
	} {
		for _, limit := range []int{1, 7, 500, 5000} {
			want, got := x.Leases.Find(c.match), []lease.Lease(nil)
			var after netip.Addr
			for more := true; more; {
				var page []lease.Lease
				var total int
				page, total, more = x.Leases.Page(c.filter, after, limit)
				if total != len(want) || len(page) > limit || more && len(page) < limit {
					t.Fatalf("%s by %d: %d of %d, more %v, want %d", name, limit, len(page), total, more, len(want))
				}
				if got = append(got, page...); len(page) > 0 {
					after = page[len(page)-1].Addr
				}
			}
			if diff := leaseDiff(want, got); diff != "" {
				t.Fatalf("%s by %d (-want +got):\n%s", name, limit, diff)
			}
		}
	}
}

// A page takes memory for itself, not for all that there is.
func TestPageMemory(t *testing.T) {
	x := paged(65536)
	const most = 1 << 20
	var before, after runtime.MemStats
	took := uint64(most + 1)
	for n := 0; n < 5 && took > most; n++ { // others may allocate meanwhile
		runtime.ReadMemStats(&before)
		page, total, more := x.Leases.Page(Filter{}, netip.Addr{}, 500)
		runtime.ReadMemStats(&after)
		if took = after.TotalAlloc - before.TotalAlloc; len(page) != 500 || total != 65536 || !more {
			t.Fatalf("%d of %d", len(page), total)
		}
	}
	t.Logf("%d bytes", took)
	if took > most {
		t.Errorf("a page of 500 takes %d bytes", took)
	}
}

// While addresses come and change, a list has every one that was there all the time, once.
func TestPageWhileTheIndexGrows(t *testing.T) {
	const there, come = 5000, 20000
	x := paged(there)
	var feeding sync.WaitGroup
	feeding.Go(func() {
		a := netip.MustParseAddr("10.1.0.0")
		for i := range come {
			x.Feed.Watched(lease.Lease{Addr: a, Version: uint64(there + i + 1), Params: lease.Params{Pool: "new", Bits: 8}})
			a = a.Next()
		}
	})
	first := netip.MustParseAddr("10.0.0.0")
	for range 20 {
		page, total, _ := x.Leases.Page(Filter{}, netip.Addr{}, there)
		in := slices.IndexFunc(page, func(l lease.Lease) bool { return l.Addr != first })
		if len(page) != there || total < there || total > there+come || page[0].Addr != first || in != 1 {
			t.Errorf("%d of %d, the first is %s", len(page), total, page[0].Addr)
		}
		for i := 1; i < len(page); i++ {
			if page[i].Addr != page[i-1].Addr.Next() {
				t.Fatalf("%s follows %s", page[i].Addr, page[i-1].Addr)
			}
		}
	}
	feeding.Wait()
}

// TestPageOfAMigration: an address that two pods have is found by either, once, and seen from the one that is asked
// for.
func TestPageOfAMigration(t *testing.T) {
	x := New()
	source, target := netip.MustParseAddr("10.0.0.11"), netip.MustParseAddr("10.0.0.12")
	x.Feed.Wrote(lease.Lease{
		Addr: netip.MustParseAddr("10.1.0.20"), Version: 1, State: lease.Active, Params: lease.Params{Pool: "p"},
		Holder: lease.Holder{Host: source, ContainerID: "aa", IfName: "eth0", Namespace: "shop", PodName: "a", PodUID: "ua"},
		Other:  &lease.Holder{Host: target, ContainerID: "bb", IfName: "eth0", Namespace: "shop", PodName: "b", PodUID: "ub"},
	})
	for i := range 64 { // of any hash
		id := fmt.Sprintf("c%d", i)
		l := x.Leases.ByContainer("bb", "")[0].Turned()
		l.Version, l.Other.ContainerID = l.Version+1, id
		x.Feed.Wrote(l)
		if page, total, _ := x.Leases.Page(Filter{ContainerID: id}, netip.Addr{}, 10); total != 1 || len(page) != 1 {
			t.Errorf("%s has %v, %d", id, page, total)
		}
		l.Version, l.Other.ContainerID = l.Version+1, "bb"
		x.Feed.Wrote(l)
	}
	for name, tc := range map[string]struct {
		filter Filter
		want   string // the pod; empty for none
	}{
		"all":                       {Filter{}, "a"},
		"the pool":                  {Filter{Pool: "p"}, "a"},
		"the source's container":    {Filter{ContainerID: "aa"}, "a"},
		"the target's container":    {Filter{ContainerID: "bb"}, "b"},
		"the target's host":         {Filter{Host: target, Status: "Active"}, "b"},
		"the target's pod":          {Filter{Namespace: "shop", PodName: "b"}, "b"},
		"the source on its host":    {Filter{Host: source, PodName: "a"}, "a"},
		"the source, at the target": {Filter{Host: target, PodName: "a"}, ""},
		"another interface":         {Filter{ContainerID: "bb", IfName: "net1"}, ""},
		"another namespace":         {Filter{Namespace: "bank", PodName: "b"}, ""},
	} {
		page, total, _ := x.Leases.Page(tc.filter, netip.Addr{}, 10)
		got := ""
		if len(page) > 0 {
			got = page[0].PodName
		}
		if got != tc.want || total != len(page) || len(page) > 1 {
			t.Errorf("%s: %+v, %d, want %q", name, page, total, tc.want)
		}
	}
}
