package index

import (
	"testing"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// kept is an address that a claim keeps, since some seconds; pod is the one that had it last.
func keptFor(addr, pool, key, pod string, seconds int, change ...func(*lease.Lease)) lease.Lease {
	l := reserved(addr, pool, 1)
	l.Retention = lease.Retention{Claim: "shop/web", PodPrimaryKey: key, Fixed: true}
	if pod != "" {
		l.Holder = lease.Holder{Namespace: "shop", PodName: pod, IfName: lease.DefaultIfName}
	}
	l.Updated = at(seconds)
	for _, c := range change {
		c(&l)
	}
	return l
}

// Addresses that are kept for the claim of a request come before any others, its own pod's first.
func TestPickOfAClaim(t *testing.T) {
	a := func(options ...option) ipam.Pool {
		return pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.12"}, options...)
	}
	b := func(options ...option) ipam.Pool {
		return pool(t, "b", "10.0.1.0/24", []string{"10.0.1.9"}, options...)
	}
	six := pool(t, "six", "2001:db8::/64", []string{"2001:db8::8-2001:db8::9"}, network("blue"))
	of := func(key string) func(*ipam.PickRequest) {
		return func(w *ipam.PickRequest) { w.Claim, w.PodPrimaryKey, w.IfName = "shop/web", key, lease.DefaultIfName }
	}
	among := func(entries ...string) func(*ipam.PickRequest) {
		return func(w *ipam.PickRequest) { w.Sets = []*netipx.IPSet{mustSet(t, entries...)} }
	}
	sets := func(all ...*netipx.IPSet) func(*ipam.PickRequest) { return func(w *ipam.PickRequest) { w.Sets = all } }
	room := func(n int) func(*ipam.PickRequest) { return func(w *ipam.PickRequest) { w.Room = n } }
	inUse := func(addr, key string) lease.Lease {
		l := leased(addr, "a", 1)
		l.Retention = lease.Retention{Claim: "shop/web", PodPrimaryKey: key, Fixed: true}
		return l
	}
	for name, tc := range map[string]pickCase{
		"none for a claim that may have none": {
			pools: []ipam.Pool{a()}, want: want(of(""), room(-1)),
			text: "ClaimFull: no available IP for pod shop/a: claim shop/web holds 0 of 0 addresses, and none of them is free " +
				"for it; hint: wait until a pod of the claim ends, or let it have more: bcsnetctl claim resize shop/web N",
		},
		"its own": {
			pools: []ipam.Pool{a()},
			leases: []lease.Lease{
				keptFor("10.0.0.9", "a", "web-0", "web-0", 9), keptFor("10.0.0.10", "a", "web-1", "web-1", 1),
				keptFor("10.0.0.11", "a", "", "", 99),
			},
			want: want(of("web-1")), picks: []string{"a 10.0.0.10"},
		},
		"the one given up last": {
			pools: []ipam.Pool{a()},
			leases: []lease.Lease{
				keptFor("10.0.0.9", "a", "", "x", 7), keptFor("10.0.0.10", "a", "", "y", 9), keptFor("10.0.0.11", "a", "", "z", 8),
			},
			want: want(of("")), picks: []string{"a 10.0.0.10"},
		},
		"of those given up at once the lowest": {
			pools:  []ipam.Pool{a()},
			leases: []lease.Lease{keptFor("10.0.0.11", "a", "", "x", 7), keptFor("10.0.0.10", "a", "", "y", 7)},
			want:   want(of("")), picks: []string{"a 10.0.0.10"},
		},
		"kept before anybody asked, for a pod": {
			pools: []ipam.Pool{a()}, leases: []lease.Lease{keptFor("10.0.0.9", "a", "", "", 0)}, want: want(of("web-0")),
			picks: []string{"a 10.0.0.9"},
		},
		"another interface's": {
			pools: []ipam.Pool{a()}, leases: []lease.Lease{keptFor("10.0.0.9", "a", "web-0", "web-0", 0,
				func(l *lease.Lease) { l.IfName = "net1" })},
			want: want(of("web-0"), among("10.0.0.12")), picks: []string{"a 10.0.0.12"},
		},
		"not those of others": {
			pools: []ipam.Pool{a()},
			leases: []lease.Lease{
				keptFor("10.0.0.9", "a", "web-0", "web-0", 0), keptFor("10.0.0.10", "a", "", "", 0,
					func(l *lease.Lease) { l.Claim = "shop/db" }),
			},
			want: want(of("web-1"), among("10.0.0.12")), picks: []string{"a 10.0.0.12"},
		},
		"of a cordoned pool": {
			pools: []ipam.Pool{a(cordoned)}, leases: []lease.Lease{keptFor("10.0.0.9", "a", "web-0", "web-0", 0)},
			want: want(of("web-0")), picks: []string{"a 10.0.0.9"},
		},
		"of a pool that is being deleted": {
			pools: []ipam.Pool{a(terminating), b()}, leases: []lease.Lease{keptFor("10.0.0.9", "a", "web-0", "web-0", 0)},
			want: want(of("web-0")), picks: []string{"b 10.0.1.9"},
		},
		"no longer in its pool": {
			pools: []ipam.Pool{b()}, leases: []lease.Lease{keptFor("10.0.1.77", "b", "web-0", "web-0", 0)}, want: want(of("web-0")),
			picks: []string{"b 10.0.1.9"},
		},
		"asked for by name": {
			pools: []ipam.Pool{a()}, leases: []lease.Lease{keptFor("10.0.0.9", "a", "", "", 0), keptFor("10.0.0.10", "a", "", "", 1)},
			want: want(of(""), asking("10.0.0.9")), picks: []string{"a 10.0.0.9"},
		},
		"the other family is new": {
			pools: []ipam.Pool{a(network("blue")), six}, leases: []lease.Lease{keptFor("10.0.0.9", "a", "web-0", "web-0", 0)},
			want: want(of("web-0"), func(w *ipam.PickRequest) { w.Key = "" }), picks: []string{"a 10.0.0.9", "six 2001:db8::9"},
		},
		"both families": {
			pools: []ipam.Pool{a(network("blue")), six}, leases: []lease.Lease{
				keptFor("10.0.0.9", "a", "web-0", "web-0", 0), keptFor("2001:db8::8", "six", "web-0", "web-0", 0),
			},
			want: want(of("web-0")), picks: []string{"a 10.0.0.9", "six 2001:db8::8"},
		},
		"another host's pool, for the whole claim": {
			pools: []ipam.Pool{a(hosts(host2)), b()}, leases: []lease.Lease{keptFor("10.0.0.9", "a", "", "x", 0)}, want: want(of("")),
			picks: []string{"b 10.0.1.9"},
		},
		"room for one more":    {pools: []ipam.Pool{a()}, leases: []lease.Lease{inUse("10.0.0.9", "")}, want: want(of(""), room(2), among("10.0.0.12")), picks: []string{"a 10.0.0.12"}},
		"one of several given": {pools: []ipam.Pool{a(), b()}, leases: []lease.Lease{inUse("10.0.0.9", "")}, want: want(of(""), among("10.0.0.9", "10.0.1.9")), picks: []string{"b 10.0.1.9"}},

		"one of each set, of several pools": {
			pools: []ipam.Pool{
				a(), b(),
			}, want: want(sets(mustSet(t, "10.0.0.10-10.0.0.11"), mustSet(t, "10.0.1.9"), mustSet(t, "10.0.0.10-10.0.0.12"))),
			picks: []string{"b 10.0.1.9", "a 10.0.0.10", "a 10.0.0.11"},
		},
		"what is missing of the sets": {
			pools: []ipam.Pool{a(), b()}, want: want(sets(mustSet(t, "10.0.0.10"), mustSet(t, "10.0.1.9")),
				having(func() lease.Lease { l := leased("10.0.1.9", "b", 1); l.Slot = 1; return l }())),
			picks: []string{"a 10.0.0.10"},
		},
		"one of each set or none": {
			pools: []ipam.Pool{a(), b()}, leases: []lease.Lease{leased("10.0.1.9", "b", 1)},
			want: want(sets(mustSet(t, "10.0.0.10"), mustSet(t, "10.0.1.9"))),
			text: "PoolExhausted: no available IP for pod shop/a: address 10.0.1.9 of pool b is held by shop/pod-of-10.0.1.9 " +
				"on host 192.168.0.1; hint: ask for another address, or wait until it is released",
		},
		"another host's pool": {
			pools: []ipam.Pool{a(hosts(host2)), b()}, leases: []lease.Lease{keptFor("10.0.0.9", "a", "web-0", "web-0", 0)},
			want: want(of("web-0")),
			text: "ClaimConflict: address 10.0.0.9 is kept for pod shop/a by claim shop/web, and cannot be given to it here: " +
				"address 10.0.0.9 is in pool a, which host 192.168.0.1 may not draw from; hint: let the pod run on a host of pool a, or give the address up: bcsnetctl ip release 10.0.0.9",
		},
		"on its way to another request": {
			pools: []ipam.Pool{a()}, leases: []lease.Lease{keptFor("10.0.0.9", "a", "web-0", "web-0", 0)}, want: want(of("web-0")),
			before: func(x *Index) { x.MarkUnknown(ip("10.0.0.9"), 0, "other", now) },
			text: "AddressInUse: address 10.0.0.9, which is kept for pod shop/a, is being given to another request; hint: " +
				"ask again in a moment",
		},
		"no room": {
			pools: []ipam.Pool{a()}, leases: []lease.Lease{inUse("10.0.0.9", ""), inUse("10.0.0.10", "")},
			want: want(of(""), room(2)),
			text: "ClaimFull: no available IP for pod shop/a: claim shop/web holds 2 of 2 addresses, and none of them is free " +
				"for it; hint: wait until a pod of the claim ends, or let it have more: bcsnetctl claim resize shop/web N",
		},
		"none given is free": {
			pools: []ipam.Pool{a()}, leases: []lease.Lease{inUse("10.0.0.9", "")}, want: want(of(""), among("10.0.0.9")),
			text: "PoolExhausted: no available IP for pod shop/a: address 10.0.0.9 of pool a is held by shop/pod-of-10.0.0.9 " +
				"on host 192.168.0.1; hint: see: bcsnetctl claim describe shop/web",
		},
		"none of several given is free": {
			pools: []ipam.Pool{a(), b()}, leases: []lease.Lease{inUse("10.0.0.9", ""), leased("10.0.1.9", "b", 1)},
			want: want(of(""), among("10.0.0.9", "10.0.1.9")),
			text: "PoolExhausted: no available IP for pod shop/a: none of the 2 addresses of 10.0.0.9, 10.0.1.9 is free on " +
				"host 192.168.0.1: address 10.0.0.9 of pool a is held by shop/pod-of-10.0.0.9 on host 192.168.0.1; address 10.0.1.9 of pool b is held by shop/pod-of-10.0.1.9 on host 192.168.0.1; hint: see: bcsnetctl claim describe shop/web",
		},
		"none given is in a pool": {
			pools: []ipam.Pool{a()}, want: want(of(""), among("10.0.1.9")),
			text: "AddressNotInPool: no available IP for pod shop/a: 10.0.1.9 is in no pool that it may draw from on host " +
				"192.168.0.1 (a); hint: add the addresses to a pool of the host, or let the pod run on a host of theirs; see: bcsnetctl claim describe shop/web",
		},
		"another's, asked for by name": {
			pools: []ipam.Pool{a()}, leases: []lease.Lease{keptFor("10.0.0.9", "a", "web-0", "web-0", 0)},
			want: want(of("web-1"), asking("10.0.0.9")),
			text: "AddressInUse: address 10.0.0.9 of pool a is kept for claim shop/web; hint: ask for another address; see " +
				"for whom: bcsnetctl ip describe 10.0.0.9",
		},
	} {
		t.Run(name, tc.check)
	}
}
