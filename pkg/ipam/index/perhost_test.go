package index

import (
	"strings"
	"testing"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// TestMaxPerHost: a host gets no more addresses of a pool than the pool says, however they are asked for.
func TestMaxPerHost(t *testing.T) {
	a := func(options ...option) ipam.Pool {
		return pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.12"}, append(options, hosts(host1, host2, "192.168.0.9"))...)
	}
	b := pool(t, "b", "10.0.1.0/24", []string{"10.0.1.9"})
	six := pool(t, "six", "2001:db8::/64", []string{"2001:db8::8"}, network("blue"), perHost(1))
	of := func(key string) func(*ipam.PickRequest) {
		return func(w *ipam.PickRequest) { w.Claim, w.PodPrimaryKey, w.IfName = "shop/web", key, lease.DefaultIfName }
	}
	sets := func(all ...*netipx.IPSet) func(*ipam.PickRequest) { return func(w *ipam.PickRequest) { w.Sets = all } }
	on := func(l lease.Lease, host string) lease.Lease { l.Host = ip(host); return l }
	const two = "host 192.168.0.1 has 2 of the 2 addresses of pool a that one host may have; hint: wait until a pod of " +
		"the host ends, or raise the bound: bcsnetctl pool set a --max-per-host N"
	onTheWay := strings.Replace(two, "has 2 of", "has 1 (and 1 on their way) of", 1)
	const pair = "pool a (10.0.0.0/24) has 3 of 5 addresses free, 2 active, 0 reserved, host 192.168.0.1 has 2 of the 2 " +
		"that one host may have"
	eight, nine := leased("10.0.0.8", "a", 1), leased("10.0.0.9", "a", 1)
	for name, tc := range map[string]pickCase{
		"one more":                     {pools: []ipam.Pool{a(perHost(3))}, leases: []lease.Lease{eight, nine}, want: want(asking("10.0.0.10")), picks: []string{"a 10.0.0.10"}},
		"no bound":                     {pools: []ipam.Pool{a(perHost(0))}, leases: []lease.Lease{eight, nine}, want: want(asking("10.0.0.10")), picks: []string{"a 10.0.0.10"}},
		"another host's do not count":  {pools: []ipam.Pool{a(perHost(2))}, leases: []lease.Lease{eight, on(nine, host2)}, want: want(asking("10.0.0.10")), picks: []string{"a 10.0.0.10"}},
		"another pool's do not count":  {pools: []ipam.Pool{a(perHost(1)), b}, leases: []lease.Lease{leased("10.0.1.9", "b", 1)}, want: want(asking("10.0.0.10")), picks: []string{"a 10.0.0.10"}},
		"what is kept does not count":  {pools: []ipam.Pool{a(perHost(1))}, leases: []lease.Lease{keptFor("10.0.0.8", "a", "", "", 1)}, want: want(asking("10.0.0.10")), picks: []string{"a 10.0.0.10"}},
		"the next pool":                {pools: []ipam.Pool{a(perHost(2)), b}, leases: []lease.Lease{eight, nine}, want: want(), picks: []string{"b 10.0.1.9"}},
		"by hand":                      {pools: []ipam.Pool{a(perHost(1))}, leases: []lease.Lease{eight}, want: ipam.PickRequest{Owner: "vm", Pools: []string{"a"}, Addrs: ips("10.0.0.10"), Key: "k", Who: "vm"}, picks: []string{"a 10.0.0.10"}},
		"what it holds":                {pools: []ipam.Pool{a(perHost(1))}, leases: []lease.Lease{eight}, want: want(having(eight))},
		"kept for the app, elsewhere":  {pools: []ipam.Pool{a(perHost(1)), b}, leases: []lease.Lease{eight, keptFor("10.0.0.9", "a", "", "", 1)}, want: want(of("")), picks: []string{"b 10.0.1.9"}},
		"both families, one at a time": {pools: []ipam.Pool{a(network("blue"), perHost(1)), six}, want: want(asking("10.0.0.10")), picks: []string{"a 10.0.0.10", "six 2001:db8::8"}},

		"full": {
			pools: []ipam.Pool{a(perHost(2))}, leases: []lease.Lease{eight, nine}, want: want(),
			text: "HostFull: no available IP for pod shop/a: " + pair +
				"; hint: wait until a pod of the host ends, or raise the bound: bcsnetctl pool set a --max-per-host N",
		},
		"by another address of its machine": {
			pools: []ipam.Pool{a(perHost(2))}, leases: []lease.Lease{eight, on(nine, "192.168.0.9")}, want: want(asking("10.0.0.10")),
			before: func(x *Index) { x.Pools.SetNode("n", node(host1, "192.168.0.9")) }, text: "HostFull: no available IP for pod shop/a: " + two,
		},
		"on its way there": {
			pools: []ipam.Pool{a(perHost(2))}, leases: []lease.Lease{eight}, want: want(asking("10.0.0.10")),
			before: func(x *Index) {
				x.Pools.SetNode("n", node("192.168.0.9", host1))
				_, _ = x.Pick(want(onHost("192.168.0.9"), asking("10.0.0.9"), func(w *ipam.PickRequest) { w.Key = "other" }), now)
			}, text: "HostFull: no available IP for pod shop/a: " + onTheWay,
		},
		"by an address that two Nodes claim": {
			pools: []ipam.Pool{a(perHost(2))}, leases: []lease.Lease{eight, on(nine, "192.168.0.9")}, want: want(asking("10.0.0.10")),
			before: func(x *Index) {
				x.Pools.SetNode("n", node(host1, "192.168.0.9"))
				x.Pools.SetNode("m", node("192.168.0.9"))
			}, picks: []string{"a 10.0.0.10"},
		},
		"while two Nodes claim its own": {
			pools: []ipam.Pool{a(perHost(2))}, leases: []lease.Lease{eight, on(nine, "192.168.0.9")}, want: want(asking("10.0.0.10")),
			before: func(x *Index) {
				x.Pools.SetNode("n", node(host1, "192.168.0.9"))
				x.Pools.SetNode("m", node(host1))
			}, picks: []string{"a 10.0.0.10"},
		},
		"by name":  {pools: []ipam.Pool{a(perHost(2))}, leases: []lease.Lease{eight, nine}, want: want(asking("10.0.0.10")), text: "HostFull: no available IP for pod shop/a: " + two},
		"its own":  {pools: []ipam.Pool{a(perHost(2))}, leases: []lease.Lease{eight, nine, keptFor("10.0.0.11", "a", "web-0", "web-0", 1)}, want: want(of("web-0")), text: "HostFull: no available IP for pod shop/a: " + two},
		"of a set": {pools: []ipam.Pool{a(perHost(2))}, leases: []lease.Lease{eight, nine}, want: want(sets(mustSet(t, "10.0.0.10"))), text: "HostFull: no available IP for pod shop/a: " + two},
		"two sets of which there is one": {
			pools: []ipam.Pool{a(perHost(2))}, leases: []lease.Lease{eight},
			want: want(sets(mustSet(t, "10.0.0.10"), mustSet(t, "10.0.0.11"))),
			text: "HostFull: no available IP for pod shop/a: " + onTheWay,
		},
		"on its way to another": {
			pools: []ipam.Pool{a(perHost(2))}, leases: []lease.Lease{eight}, want: want(asking("10.0.0.10")),
			before: func(x *Index) {
				_, _ = x.Pick(want(asking("10.0.0.9"), func(w *ipam.PickRequest) { w.Key = "other" }), now)
			},
			text: "HostFull: no available IP for pod shop/a: " + onTheWay,
		},
		"lost while it was being given": {
			pools: []ipam.Pool{a(perHost(2))}, want: want(asking("10.0.0.10")), picks: []string{"a 10.0.0.10"},
			before: func(x *Index) {
				_, _ = x.Pick(want(asking("10.0.0.9")), now)
				x.Feed.Watched(nine)
				x.Feed.WatchedDelete(nine.Addr, 99)
			},
		},
		"all that is free is kept for it": {
			pools: []ipam.Pool{a(perHost(1))}, leases: []lease.Lease{
				eight, keptFor("10.0.0.9", "a", "", "", 1), reserved("10.0.0.10", "a", 1), reserved("10.0.0.11", "a", 1),
				reserved("10.0.0.12", "a", 1),
			}, want: want(of("")),
			text: "HostFull: no available IP for pod shop/a: pool a (10.0.0.0/24) has 0 of 5 addresses free, 1 active, 4 " +
				"reserved, host 192.168.0.1 has 1 of the 1 that one host may have; hint: wait until a pod of the host ends, or raise the bound: bcsnetctl pool set a --max-per-host N",
		},
		"all of its set is kept for it": {
			pools: []ipam.Pool{a(perHost(2))}, leases: []lease.Lease{eight, nine, keptFor("10.0.0.11", "a", "", "", 1)},
			want: want(of(""), sets(mustSet(t, "10.0.0.11"))),
			text: "HostFull: no available IP for pod shop/a: " + two,
		},
		"lost": {
			pools: []ipam.Pool{a(perHost(2))}, leases: []lease.Lease{eight, nine}, want: want(asking("10.0.0.10")),
			before: func(x *Index) { x.Feed.WatchedDelete(nine.Addr, 99) }, text: "HostFull: no available IP for pod shop/a: " + two,
		},
		"one family is full": {
			pools: []ipam.Pool{a(network("blue")), six}, leases: []lease.Lease{leased("2001:db8::9", "six", 1)}, want: want(),
			text: "HostFull: no available IP for pod shop/a: pool a (10.0.0.0/24) has 5 of 5 addresses free, 0 active, 0 " +
				"reserved; pool six (2001:db8::/64) has 1 of 2 addresses free, 1 active, 0 reserved, host 192.168.0.1 has 1 of the 1 that one host may have; hint: wait until a pod of the host ends, or raise the bound: bcsnetctl pool set six --max-per-host N",
		},
	} {
		t.Run(name, tc.check)
	}
}

// TestInheritPerHost: those that take over addresses at one moment count from when they do.
func TestInheritPerHost(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.12"}, hosts(host1, host2), perHost(1)))
	var all []lease.Lease
	for i, a := range []string{"10.0.0.8", "10.0.0.9"} {
		l := leased(a, "a", uint64(i+1))
		l.Retention = lease.Retention{Claim: "shop/web", PodPrimaryKey: a, Fixed: true}
		l.Host = ip(host2)
		x.Feed.Watched(l)
		all = append(all, l)
	}
	take := func(l lease.Lease) string {
		held, refusal := x.AssumeTakeOver(want(func(w *ipam.PickRequest) {
			w.Claim, w.PodPrimaryKey, w.Key = "shop/web", l.PodPrimaryKey, l.PodPrimaryKey
		}), l, now)
		if held != (refusal == nil) {
			t.Errorf("held %t, %v", held, refusal)
		}
		return refused(refusal)
	}
	if got := take(all[0]); got != "" {
		t.Fatal(got)
	}
	if got, want := take(all[1]),
		"HostFull: no available IP for pod shop/a: host 192.168.0.1 has 0 (and 1 on their way) of the 1 addresses of pool a that one host may have; hint: wait until a pod of the host ends, or raise the bound: bcsnetctl pool set a --max-per-host N"; got != want {
		t.Errorf("%s", got)
	}
	if held, refusal := x.AssumeTakeOver(want(func(w *ipam.PickRequest) { w.AnyHost = true }), all[0], now); held ||
		refusal != nil {
		t.Errorf("what is held already is held by another: %t, %v", held, refusal)
	}
	x.Forget(all[0].Addr)
	if got := take(all[1]); got != "" {
		t.Errorf("the first has let it be: %s", got)
	}
}

// TestInheritsPerHost: a pod takes over the address of an earlier one where the host may have one more, or has it
// already.
func TestInheritsPerHost(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.12"}, hosts(host1, host2), perHost(1)))
	mine, other := leased("10.0.0.8", "a", 1), leased("10.0.0.9", "a", 2)
	mine.Retention = lease.Retention{Claim: "shop/web", PodPrimaryKey: "web-0", Fixed: true}
	x.Feed.Watched(mine)
	ask := func(host string) string {
		t.Helper()
		_, ok, refusal := x.TakeOverParams(want(onHost(host),
			func(w *ipam.PickRequest) { w.Claim, w.PodPrimaryKey = "shop/web", "web-0" }), mine)
		if ok != (refusal == nil) {
			t.Errorf("%v, %v", ok, refusal)
		}
		return refused(refusal)
	}
	if got := ask(host1) + ask(host2); got != "" {
		t.Errorf("its own host, and one that has none: %s", got)
	}
	other.Host = ip(host2)
	x.Feed.Watched(other)
	if got := ask(host1); got != "" {
		t.Errorf("its own host: %s", got)
	}
	if got, want := ask(host2),
		"HostFull: no available IP for pod shop/a: host 192.168.0.2 has 1 of the 1 addresses of pool a that one host may have; hint: wait until a pod of the host ends, or raise the bound: bcsnetctl pool set a --max-per-host N"; got != want {
		t.Errorf("a host that has one: %s", got)
	}
}
