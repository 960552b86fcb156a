package index

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// A request that names a pool draws from it alone; one of an operator for an owner on no host needs
// neither the pool's hosts nor its namespaces.
func TestPickFromANamedPool(t *testing.T) {
	a := func(options ...option) ipam.Pool {
		return pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.9"}, options...)
	}
	b := func(options ...option) ipam.Pool {
		return pool(t, "b", "10.0.1.0/24", []string{"10.0.1.9"}, options...)
	}
	a6 := pool(t, "a6", "2001:db8::/64", []string{"2001:db8::8-2001:db8::9"}, network("blue"))
	from := func(name string) func(*ipam.PickRequest) {
		return func(w *ipam.PickRequest) { w.Pools = []string{name} }
	}
	byHand := func(w *ipam.PickRequest) {
		w.Host, w.Namespace, w.Owner, w.Who = netip.Addr{}, "", "vm-1", "owner vm-1"
	}
	for name, tc := range map[string]struct {
		pools  []ipam.Pool
		before func(*Index)
		want   ipam.PickRequest
		picks  []string
		text   string
	}{
		"the one named":                  {pools: []ipam.Pool{a(priority(9)), b()}, want: want(from("b")), picks: []string{"b 10.0.1.9"}},
		"of a network, one family alone": {pools: []ipam.Pool{b(network("blue")), a6}, want: want(from("b")), picks: []string{"b 10.0.1.9"}},
		"by hand":                        {pools: []ipam.Pool{a(), b(hosts())}, want: want(from("b"), byHand), picks: []string{"b 10.0.1.9"}},
		"by hand, bound to a namespace":  {pools: []ipam.Pool{b(hosts(), namespaces("shop"))}, want: want(from("b"), byHand), picks: []string{"b 10.0.1.9"}},
		"by hand, an address":            {pools: []ipam.Pool{a(hosts())}, want: want(from("a"), byHand, asking("10.0.0.8")), picks: []string{"a 10.0.0.8"}},

		"by hand, but no pool": {
			pools: []ipam.Pool{a()}, want: want(byHand),
			text: "MissingField: a request that names no host names an owner and a pool",
		},
		"no owner": {
			pools: []ipam.Pool{a(hosts(host2))}, want: want(from("a")),
			text: "HostNotInPool: host 192.168.0.1 may not draw from pool a; hint: add the host with: bcsnetctl pool add-host " +
				"a 192.168.0.1",
		},
		"an owner on a host": {
			pools: []ipam.Pool{a(hosts(host2))}, want: want(byHand, onHost(host1), from("a")),
			text: "HostNotInPool: host 192.168.0.1 may not draw from pool a; hint: add the host with: bcsnetctl pool add-host " +
				"a 192.168.0.1",
		},
		"another namespace": {
			pools: []ipam.Pool{a(namespaces("x"))}, want: want(from("a")),
			text: "NamespaceNotServed: pool a does not serve namespace shop; hint: see why: bcsnetctl explain " +
				"namespace shop; to see the effect of binding the pool to it: bcsnetctl pool bind a --namespace shop --dry-run=server",
		},
		"another network": {
			pools: []ipam.Pool{a(network("blue"))}, want: want(from("a"), ofNetwork("red")),
			text: "NetworkNotFound: pool a is not part of network red; hint: ask for another pool or network",
		},
		"unknown": {
			pools: []ipam.Pool{a()}, want: want(from("c"), byHand),
			text: "NotFound: there is no pool c; hint: see: bcsnetctl pool list",
		},
		"unknown, with an address": {
			pools: []ipam.Pool{a()}, want: want(from("c"), byHand, asking("10.0.0.8")),
			text: "NotFound: there is no pool c; hint: see: bcsnetctl pool list",
		},
		"an address of another pool": {
			pools: []ipam.Pool{a(), b()}, want: want(from("b"), byHand, asking("10.0.0.8")),
			text: "AddressNotInPool: address 10.0.0.8 is in pool a, not in pool b; hint: ask for it there, or for another " +
				"address",
		},
		"an address held by hand": {
			pools: []ipam.Pool{b()}, want: want(from("b"), byHand, asking("10.0.1.9")),
			before: func(x *Index) {
				l := leased("10.0.1.9", "b", 1)
				l.Holder = lease.Holder{Owner: "vm-2", IfName: lease.DefaultIfName}
				x.Feed.Watched(l)
			},
			text: "AddressInUse: address 10.0.1.9 of pool b is held by vm-2; hint: ask for another address, or wait until it " +
				"is released",
		},
		"exhausted, while another has room": {
			pools: []ipam.Pool{a(), b()}, before: func(x *Index) { x.take("b", "10.0.1.9") }, want: want(from("b"), byHand),
			text: "PoolExhausted: no available IP for owner vm-1: pool b (10.0.1.0/24) has 0 of 1 addresses free, 1 active, 0 " +
				"reserved" +
				"; hint: see who holds them: bcsnetctl ip list --pool b; add addresses: bcsnetctl pool add-ip b RANGE",
		},
		"cordoned": {
			pools: []ipam.Pool{a(), b(cordoned)}, want: want(from("b"), byHand),
			text: "PoolCordoned: no available IP for owner vm-1: pool b is cordoned; hint: let it allocate addresses again: " +
				"bcsnetctl pool uncordon b",
		},
		"being deleted": {
			pools: []ipam.Pool{a(), b(terminating)}, want: want(from("b"), byHand),
			text: "PoolCordoned: no available IP for owner vm-1: pool b is being deleted; hint: see: bcsnetctl pool describe b",
		},
		"overlapped as a whole": {
			pools: []ipam.Pool{b(), pool(t, "c", "10.0.1.0/24", []string{"10.0.1.9"}, created(9))}, want: want(from("c"), byHand),
			text: "PoolExhausted: no available IP for owner vm-1: pool c (10.0.1.0/24) has 0 of 0 addresses free, 0 active, 0 " +
				"reserved" +
				", 1 served by pool b, which has them, too" +
				"; hint: leave the addresses to one of the pools: bcsnetctl pool remove-ip POOL ADDRESS...; see: bcsnetctl pool describe c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(tc.pools...)
			if tc.before != nil {
				tc.before(x)
			}
			picks, refusal := x.Pick(tc.want, now)
			if diff := cmp.Diff(tc.picks, picked(picks)); diff != "" {
				t.Errorf("picks (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.text, refused(refusal)); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOffer(t *testing.T) {
	a := func(options ...option) ipam.Pool {
		return pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.9"}, options...)
	}
	for name, tc := range map[string]struct {
		pool   ipam.Pool
		before func(*Index)
		addr   string
		want   string
		text   string
	}{
		"free":               {pool: a(), addr: "10.0.0.8", want: "a"},
		"free, with object":  {pool: a(), before: func(x *Index) { x.Feed.Watched(available("10.0.0.8", "a", 1)) }, addr: "10.0.0.8", want: "a"},
		"of no host":         {pool: a(hosts()), addr: "10.0.0.8", want: "a"},
		"cordoned":           {pool: a(cordoned), addr: "10.0.0.8", want: "a", text: "PoolCordoned: address 10.0.0.8 is in pool a, which allocates nothing: it is cordoned; hint: let it allocate addresses again: bcsnetctl pool uncordon a"},
		"a node's own":       {pool: a(), before: func(x *Index) { x.Pools.SetNode("n", node("10.0.0.8")) }, addr: "10.0.0.8", want: "a", text: "AddressInUse: address 10.0.0.8 of pool a is the address of node n; hint: take it out of the pool: bcsnetctl pool remove-ip a 10.0.0.8"},
		"gateway":            {pool: a(), addr: "10.0.0.1", text: "AddressNotInPool: address 10.0.0.1 is the gateway of pool a (10.0.0.0/24); hint: ask for another address"},
		"network address":    {pool: a(), addr: "10.0.0.0", text: "AddressNotInPool: address 10.0.0.0 is the network address of pool a (10.0.0.0/24); hint: ask for another address"},
		"broadcast address":  {pool: a(), addr: "10.0.0.255", text: "AddressNotInPool: address 10.0.0.255 is the broadcast address of pool a (10.0.0.0/24); hint: ask for another address"},
		"of the subnet only": {pool: a(), addr: "10.0.0.7", text: "AddressNotInPool: address 10.0.0.7 is not one of the addresses of pool a (10.0.0.0/24); hint: add it with: bcsnetctl pool add-ip a 10.0.0.7"},
		"in no pool":         {pool: a(), addr: "10.0.7.7", text: "AddressNotInPool: address 10.0.7.7 is in no pool; hint: see: bcsnetctl pool list"},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(tc.pool)
			if tc.before != nil {
				tc.before(x)
			}
			got, refusal := x.Candidate(ip(tc.addr), now)
			if got.Name != tc.want || refused(refusal) != tc.text {
				t.Errorf("got %q and %q", got.Name, refused(refusal))
			}
		})
	}
}
