package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

func TestPickAddressesAskedFor(t *testing.T) {
	a := func(options ...option) ipam.Pool {
		return pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.9"}, options...)
	}
	a6 := func(options ...option) ipam.Pool {
		return pool(t, "a6", "2001:db8::/64", []string{"2001:db8::8-2001:db8::9"}, options...)
	}
	b := func(options ...option) ipam.Pool {
		return pool(t, "b", "10.0.1.0/24", []string{"10.0.1.9"}, options...)
	}
	blue := network("blue")
	for name, tc := range map[string]struct {
		pools  []ipam.Pool
		before func(*Index)
		want   ipam.PickRequest
		picks  []string
		text   string
	}{
		"from the first pool": {pools: []ipam.Pool{a(), b()}, want: want(asking("10.0.0.9")), picks: []string{"a 10.0.0.9"}},
		"from another pool":   {pools: []ipam.Pool{a(), b()}, want: want(asking("10.0.1.9")), picks: []string{"b 10.0.1.9"}},
		"one of each family": {
			pools: []ipam.Pool{a(blue), a6(blue)}, want: want(asking("2001:db8::9", "10.0.0.9")),
			picks: []string{"a6 2001:db8::9", "a 10.0.0.9"},
		},
		"one of each family, of pools without network": {
			pools: []ipam.Pool{a(), a6()}, want: want(asking("10.0.0.9", "2001:db8::9")),
			picks: []string{"a 10.0.0.9", "a6 2001:db8::9"},
		},
		"IPv4 of a network: IPv6 comes from it": {
			pools: []ipam.Pool{b(), a(blue), pool(t, "a6", "2001:db8::/64", []string{"2001:db8::9"}, blue)},
			want:  want(asking("10.0.0.9")), picks: []string{"a 10.0.0.9", "a6 2001:db8::9"},
		},
		"IPv6 of a network: IPv4 comes from it": {
			pools: []ipam.Pool{pool(t, "a", "10.0.0.0/24", []string{"10.0.0.9"}, blue), a6(blue), b(priority(1))},
			want:  want(asking("2001:db8::8")), picks: []string{"a6 2001:db8::8", "a 10.0.0.9"},
		},
		"IPv4 of a network without IPv6": {pools: []ipam.Pool{a(blue), a6()}, want: want(asking("10.0.0.8")), picks: []string{"a 10.0.0.8"}},
		"of the network asked for":       {pools: []ipam.Pool{a(blue), b()}, want: want(asking("10.0.0.8"), ofNetwork("blue")), picks: []string{"a 10.0.0.8"}},
		"held already":                   {pools: []ipam.Pool{a()}, want: want(asking("10.0.0.8"), having(leased("10.0.0.8", "a", 1)))},
		"held already, in a pool that is gone": {
			pools: []ipam.Pool{b()}, want: want(asking("10.0.0.8"), having(leased("10.0.0.8", "a", 1))),
		},
		"one held, the other asked for": {
			pools: []ipam.Pool{a(blue), a6(blue)}, want: want(asking("10.0.0.8", "2001:db8::8"), having(leased("10.0.0.8", "a", 1))),
			picks: []string{"a6 2001:db8::8"},
		},
		"one held in a pool that is gone, the other asked for": {
			pools: []ipam.Pool{a6()}, want: want(asking("2001:db8::8"), having(leased("10.0.0.8", "a", 1))),
			picks: []string{"a6 2001:db8::8"},
		},
		"one held in a pool that fits no more, the other asked for": {
			pools: []ipam.Pool{a(hosts(host2)), a6()}, want: want(asking("2001:db8::8"), having(leased("10.0.0.8", "a", 1))),
			picks: []string{"a6 2001:db8::8"},
		},

		"in no pool": {
			pools: []ipam.Pool{a()}, want: want(asking("172.16.0.1")),
			text: "AddressNotInPool: address 172.16.0.1 is in no pool; hint: see: bcsnetctl pool list",
		},
		"in the subnet of a pool only": {
			pools: []ipam.Pool{a()}, want: want(asking("10.0.0.77")),
			text: "AddressNotInPool: address 10.0.0.77 is not one of the addresses of pool a (10.0.0.0/24); hint: add it " +
				"with: bcsnetctl pool add-ip a 10.0.0.77",
		},
		"in the subnet of several pools: the one that fits is named": {
			pools: []ipam.Pool{
				a(hosts(host2)), pool(t, "c", "10.0.0.0/24", []string{"10.0.0.20"}),
				pool(t, "d", "10.0.0.0/24", []string{"10.0.0.21"}),
			},
			want: want(asking("10.0.0.77")),
			text: "AddressNotInPool: address 10.0.0.77 is not one of the addresses of pool c (10.0.0.0/24); hint: add it " +
				"with: bcsnetctl pool add-ip c 10.0.0.77",
		},
		"the gateway": {
			pools: []ipam.Pool{a()}, want: want(asking("10.0.0.1")),
			text: "AddressNotInPool: address 10.0.0.1 is the gateway of pool a (10.0.0.0/24); hint: ask for another address",
		},
		"excluded": {
			pools: []ipam.Pool{a(func(p *ipam.Pool) {
				p.Plan = newPlan(t, ipam.PlanSpec{
					Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: []string{"10.0.0.8-10.0.0.9"},
					Exclude: []string{"10.0.0.9"},
				})
			})},
			want: want(asking("10.0.0.9")),
			text: "AddressNotInPool: address 10.0.0.9 is among the excludeIPs of pool a (10.0.0.0/24); hint: ask for another " +
				"address; see the pool: bcsnetctl pool describe a",
		},
		"of a pool of other hosts": {
			pools: []ipam.Pool{a(hosts(host2)), b()}, want: want(asking("10.0.0.9")),
			text: "HostNotInPool: address 10.0.0.9 is in pool a, which host 192.168.0.1 may not draw from; hint: add the host " +
				"with: bcsnetctl pool add-host a 192.168.0.1",
		},
		"of a pool of another namespace": {
			pools: []ipam.Pool{a(namespaces("x")), b()}, want: want(asking("10.0.0.9")),
			text: "NamespaceNotServed: address 10.0.0.9 is in pool a, which does not serve namespace shop; hint: see why: bcsnetctl explain " +
				"namespace shop; to see the effect of binding the pool to it: bcsnetctl pool bind a --namespace shop --dry-run=server",
		},
		"of an unbound pool, for a namespace with its own": {
			pools: []ipam.Pool{a(), b(namespaces("shop"))}, want: want(asking("10.0.0.9")),
			text: "NamespaceNotServed: address 10.0.0.9 is in pool a, which does not serve namespace shop; hint: see why: bcsnetctl explain " +
				"namespace shop; to see the effect of binding the pool to it: bcsnetctl pool bind a --namespace shop --dry-run=server",
		},
		"of a pool of another network": {
			pools: []ipam.Pool{a(blue), b(network("red"))}, want: want(asking("10.0.0.9"), ofNetwork("red")),
			text: "NetworkNotFound: address 10.0.0.9 is in pool a, which is not part of network red; hint: ask for another " +
				"address or network",
		},
		"one of each family, of different networks": {
			pools: []ipam.Pool{a(blue), a6(network("red"))}, want: want(asking("10.0.0.9", "2001:db8::9")),
			text: "NetworkNotFound: address 10.0.0.9 of pool a and address 2001:db8::9 of pool a6 are not of one network; " +
				"hint: ask for addresses of one network; see: bcsnetctl pool list -o wide",
		},
		"of a cordoned pool": {
			pools: []ipam.Pool{a(cordoned), b()}, want: want(asking("10.0.0.9")),
			text: "PoolCordoned: address 10.0.0.9 is in pool a, which allocates nothing: it is cordoned; hint: let it allocate addresses again: bcsnetctl pool uncordon" +
				" a",
		},
		"of a pool being deleted": {
			pools: []ipam.Pool{a(terminating), b()}, want: want(asking("10.0.0.9")),
			text: "PoolCordoned: address 10.0.0.9 is in pool a, which allocates nothing: it is being deleted; hint: see: " +
				"bcsnetctl pool describe a",
		},
		"from a host in no pool": {
			pools: []ipam.Pool{a(hosts(host2))}, want: want(asking("10.0.0.9")),
			text: "HostNotInPool: host 192.168.0.1 does not exist in pools; hint: add it with: bcsnetctl pool add-host POOL " +
				"192.168.0.1",
		},
		"in use": {
			pools: []ipam.Pool{a()}, before: func(x *Index) { x.take("a", "10.0.0.9") }, want: want(asking("10.0.0.9")),
			text: "AddressInUse: address 10.0.0.9 of pool a is held by shop/pod-of-10.0.0.9 on host 192.168.0.1; hint: ask " +
				"for another address, or wait until it is released",
		},
		"reserved": {
			pools: []ipam.Pool{a()}, before: func(x *Index) { x.Feed.Watched(reserved("10.0.0.9", "a", 1)) },
			want: want(asking("10.0.0.9")),
			text: "AddressInUse: address 10.0.0.9 of pool a is reserved; hint: ask for another address; see by whom and why: " +
				"bcsnetctl ip describe 10.0.0.9",
		},
		"object being deleted": {
			pools: []ipam.Pool{a()}, before: func(x *Index) { l := available("10.0.0.9", "a", 1); l.Deleting = true; x.Feed.Watched(l) },
			want: want(asking("10.0.0.9")),
			text: "AddressInUse: the object of address 10.0.0.9 of pool a is being deleted; hint: ask again in a moment",
		},
		"a node's own": {
			pools: []ipam.Pool{a()}, before: func(x *Index) { x.Pools.SetNode("node-1", node("10.0.0.9")) }, want: want(asking("10.0.0.9")),
			text: "AddressInUse: address 10.0.0.9 of pool a is the address of node node-1; hint: take it out of the pool: " +
				"bcsnetctl pool remove-ip a 10.0.0.9",
		},
		"under way to another request": {
			pools: []ipam.Pool{a()}, before: func(x *Index) { _, _ = x.Pick(want(asking("10.0.0.9")), now) },
			want: want(asking("10.0.0.9")),
			text: "AddressInUse: address 10.0.0.9 of pool a is being given to another request; hint: ask again in a moment",
		},
		"in doubt for another request": {
			pools: []ipam.Pool{a()}, before: func(x *Index) { x.MarkUnknown(ip("10.0.0.9"), 0, "other", now) },
			want: want(asking("10.0.0.9")),
			text: "AddressInUse: address 10.0.0.9 of pool a is being given to another request; hint: ask again in a moment",
		},
		"the second one in use: the first is not kept either": {
			pools: []ipam.Pool{a(blue), a6(blue)}, before: func(x *Index) { x.take("a6", "2001:db8::9") },
			want: want(asking("10.0.0.9", "2001:db8::9")),
			text: "AddressInUse: address 2001:db8::9 of pool a6 is held by shop/pod-of-2001:db8::9 on host 192.168.0.1; hint: " +
				"ask for another address, or wait until it is released",
		},
		"the other family exhausted": {
			pools: []ipam.Pool{a(blue), pool(t, "a6", "2001:db8::/64", nil, blue)}, want: want(asking("10.0.0.9")),
			text: "PoolExhausted: no available IP for pod shop/a: pool a (10.0.0.0/24) has 2 of 2 addresses free, 0 active, 0 " +
				"reserved" +
				"; pool a6 (2001:db8::/64) has 0 of 0 addresses free, 0 active, 0 reserved" +
				"; hint: see who holds them: bcsnetctl ip list --pool a6; add addresses: bcsnetctl pool add-ip a6 RANGE",
		},
		"held, and one more asked for that cannot be given": {
			pools: []ipam.Pool{a(hosts(host2)), a6(blue)}, before: func(x *Index) { x.take("a6", "2001:db8::8") },
			want: want(asking("2001:db8::8"), having(leased("10.0.0.8", "a", 1))),
			text: "AddressInUse: address 2001:db8::8 of pool a6 is held by shop/pod-of-2001:db8::8 on host 192.168.0.1; hint: " +
				"ask for another address, or wait until it is released",
		},
		"held, and one more asked for from a host in no pool": {
			pools: []ipam.Pool{a(hosts(host2)), a6(hosts(host2))},
			want:  want(asking("2001:db8::8"), having(leased("10.0.0.8", "a", 1))),
			text: "HostNotInPool: address 2001:db8::8 is in pool a6, which host 192.168.0.1 may not draw from; hint: add the " +
				"host with: bcsnetctl pool add-host a6 192.168.0.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(tc.pools...)
			if tc.before != nil {
				tc.before(x)
			}
			holds := len(x.core.state.Assumed.ByAddr)
			picks, refusal := x.Pick(tc.want, now)
			if diff := cmp.Diff(tc.picks, picked(picks)); diff != "" {
				t.Errorf("picks (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.text, refused(refusal)); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
			if got := len(x.core.state.Assumed.ByAddr) - holds; got != len(tc.picks) {
				t.Errorf("%d addresses are kept for %d picks", got, len(tc.picks))
			}
		})
	}
}
