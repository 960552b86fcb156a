package allocator

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// ofContainerOn is a holder as an ADD names it.
func ofContainerOn(host, namespace, container string) lease.Holder {
	h := lease.Holder{Namespace: namespace, ContainerID: container, IfName: "eth0"}
	h.Host, _ = netip.ParseAddr(host)
	return h
}

// Tombstones last ten minutes and are bounded.
func TestMarks(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	m := newTombstones(func() time.Time { return now })
	put := func(container, ifName string, at time.Time) {
		m.put(ReleaseRequest{ContainerID: container, IfName: ifName}, begun(at))
	}
	deleted := func(container string, at time.Time) bool {
		return m.overtook(ofContainerOn("", "", container), "", begun(at))
	}
	began := now
	put("c", "eth0", began)
	other := ofContainerOn("", "", "c")
	other.IfName = "net1"
	if !deleted("c", began) || m.overtook(other, "", begun(began)) || deleted("d", began) ||
		m.overtook(lease.Holder{Owner: "c", IfName: "eth0"}, "", begun(began)) || deleted("c", began.Add(1)) {
		t.Error("the tombstone is not for what began until then, on that interface of that container")
	}
	put("c", "eth0", began.Add(-time.Hour)) // a DEL of long ago, late
	if !deleted("c", began) {
		t.Error("an older DEL took the newer one's tombstone back")
	}
	now = now.Add(tombstoneLife - time.Second)
	if !deleted("c", began) {
		t.Error("the tombstone is gone too early")
	}
	now = now.Add(2 * time.Second)
	if deleted("c", began) {
		t.Error("the tombstone is still there")
	}
	for n := range maxTombstones + 1000 {
		put(fmt.Sprint(n), "", now)
	}
	if got := sum(t, m); got > maxTombstones {
		t.Errorf("%d tombstones, want at most %d", got, maxTombstones)
	}
	if deleted("0", now) || !deleted(fmt.Sprint(maxTombstones+999), now) {
		t.Error("not the oldest were dropped")
	}
	now = now.Add(tombstoneLife)
	put("last", "", now)
	if got := sum(t, m); got != 1 {
		t.Errorf("%d tombstones are left, want 1", got)
	}
	m.put(ReleaseRequest{PodUID: "u", OnHosts: []netip.Addr{host(1)}}, begun(now)) // is for no container
	now = now.Add(tombstoneLife)
	m.put(ReleaseRequest{ContainerID: "c", OnHosts: []netip.Addr{host(1)}}, begun(now))
	if got := sum(t, m); got != 1 || len(m.by) != 1 {
		t.Errorf("%d tombstones of %d callers, want those of the caller that sent none since gone, too", got, len(m.by))
	}
	now = now.Add(-time.Hour) // a clock that was set back
	put("back", "", now)
	if !deleted("back", now) {
		t.Error("no tombstone after the clock was set back")
	}
}

// sum returns how many there are of all callers, and fails the test if they are not counted so.
func sum(t *testing.T, all *tombstones) (n int) {
	t.Helper()
	for c, of := range all.by {
		if n += len(of.order); len(of.order) == 0 || len(of.by) > len(of.order) {
			t.Errorf("caller %v has %d tombstones, %d in order", c, len(of.by), len(of.order))
		}
	}
	if n != all.count {
		t.Errorf("%d tombstones are counted, there are %d", all.count, n)
	}
	return n
}

func host(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}) }

// A DEL bars what its caller may act for: of its hosts, and in its namespace.
func TestMarksReachAsFarAsTheirCaller(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	hosts := func(all ...int) []netip.Addr {
		out := []netip.Addr{}
		for _, n := range all {
			out = append(out, host(n))
		}
		return out
	}
	for what, test := range map[string]struct {
		del  ReleaseRequest
		add  lease.Holder
		want bool
	}{
		"a caller for all":               {ReleaseRequest{}, ofContainerOn("10.0.0.1", "shop", "c"), true},
		"of a host":                      {ReleaseRequest{OnHosts: hosts(1)}, ofContainerOn("10.0.0.1", "shop", "c"), true},
		"its second address":             {ReleaseRequest{OnHosts: hosts(2, 1)}, ofContainerOn("10.0.0.1", "shop", "c"), true},
		"another host":                   {ReleaseRequest{OnHosts: hosts(2)}, ofContainerOn("10.0.0.1", "shop", "c"), false},
		"no host":                        {ReleaseRequest{OnHosts: hosts()}, ofContainerOn("10.0.0.1", "shop", "c"), false},
		"no host, for what is on none":   {ReleaseRequest{OnHosts: hosts()}, ofContainerOn("", "shop", "c"), false},
		"a host, for what is on none":    {ReleaseRequest{OnHosts: hosts(1)}, ofContainerOn("", "shop", "c"), false},
		"of a namespace":                 {ReleaseRequest{Namespace: "shop"}, ofContainerOn("10.0.0.1", "shop", "c"), true},
		"another namespace":              {ReleaseRequest{Namespace: "lab"}, ofContainerOn("10.0.0.1", "shop", "c"), false},
		"a namespace of a host":          {ReleaseRequest{OnHosts: hosts(1), Namespace: "shop"}, ofContainerOn("10.0.0.1", "shop", "c"), true},
		"another namespace of the host":  {ReleaseRequest{OnHosts: hosts(1), Namespace: "lab"}, ofContainerOn("10.0.0.1", "shop", "c"), false},
		"the namespace, of another host": {ReleaseRequest{OnHosts: hosts(2), Namespace: "shop"}, ofContainerOn("10.0.0.1", "shop", "c"), false},
	} {
		m := newTombstones(func() time.Time { return now })
		test.del.ContainerID = "c"
		m.put(test.del, begun(now))
		if got := m.overtook(test.add, "", begun(now)); got != test.want {
			t.Errorf("%s: %v, want %v", what, got, test.want)
		}
	}
}

// Who sends DELs without end drops tombstones of its own, and nobody else's.
func TestMarksOfOthersStay(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	m := newTombstones(func() time.Time { return now })
	of := func(n int, container string) ReleaseRequest {
		return ReleaseRequest{ContainerID: container, OnHosts: []netip.Addr{host(n)}, Namespace: "shop"}
	}
	for n := range 100 {
		m.put(of(n, "c"), begun(now))
	}
	for i := range maxTombstones {
		r := of(200, fmt.Sprint(i))
		r.Namespace = fmt.Sprint(i % 7) // which it chooses
		m.put(r, begun(now))
		m.put(of(201, fmt.Sprint(i)), begun(now))
	}
	for n := range 100 {
		m.put(of(n, "d"), begun(now))
		for _, container := range []string{"c", "d"} {
			if !m.overtook(ofContainerOn(host(n).String(), "shop", container), "", begun(now)) {
				t.Fatalf("host %d: its tombstone of %s is gone", n, container)
			}
		}
	}
	if got := sum(t, m); got != maxTombstones {
		t.Errorf("%d tombstones, want %d", got, maxTombstones)
	}
}

// The clock of one host says nothing about a request of another one: a DEL whose startedAt is in the future bars an ADD
// of its own host alone.
func TestClockOfAnotherHost(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	ahead := func(by netip.Addr) moment { return moment{by, now.Add(4 * time.Minute), now} }
	add := func(by netip.Addr) moment { return moment{by, now.Add(3 * time.Second), now.Add(3 * time.Second)} }
	if !add(host(1)).after(ahead(host(2))) || !add(host(1)).after(ahead(netip.Addr{})) {
		t.Error("a request of another clock is before what came three seconds earlier")
	}
	if add(host(1)).after(ahead(host(1))) {
		t.Error("the clock of a host does not decide about its own requests")
	}
}
