package index

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// A picked address is nobody else's until it is forgotten, whatever happens to its object meanwhile.
func TestHoldKeepsAnAddress(t *testing.T) {
	p := pool(t, "a", "10.0.0.0/24", []string{"10.0.0.9"})
	for name, meanwhile := range map[string]func(*Index){
		"nothing":           func(*Index) {},
		"doubt":             func(x *Index) { x.MarkUnknown(ip("10.0.0.9"), 0, "key", now) },
		"an object appears": func(x *Index) { x.Feed.Watched(available("10.0.0.9", "a", 1)) },
		"taken and given up": func(x *Index) {
			x.take("a", "10.0.0.9")
			released := available("10.0.0.9", "a", 2)
			released.Updated = at(1)
			x.Feed.Watched(released)
		},
		"a full list":   func(x *Index) { x.Feed.Replace(nil, 5) },
		"a node has it": func(x *Index) { x.Pools.SetNode("n", node("10.0.0.9")); x.Pools.SetNode("n", ipam.Node{}) },
		"the pool changes": func(x *Index) {
			x.Pools.SetPool(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.9", "10.0.0.10"}, cordoned))
			x.Pools.SetPool(p)
		},
		"the pool is rebuilt": func(x *Index) { x.Pools.RemovePool("a"); x.Pools.SetPool(p) },
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(p)
			if picks, refusal := x.Pick(want(), now); len(picks) != 1 {
				t.Fatal(refused(refusal))
			}
			meanwhile(x)
			if picks, _ := x.Pick(want(), now); picks != nil {
				t.Errorf("given twice: %v", picked(picks))
			}
			x.Forget(ip("10.0.0.9"))
			if picks, refusal := x.Pick(want(), now); len(picks) != 1 {
				t.Errorf("not given after the drop: %s", refused(refusal))
			}
		})
	}
}

func TestDoubts(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.9"}))
	doubts := func(key string, want map[netip.Addr]ledger.Assumed) {
		t.Helper()
		if diff := cmp.Diff(want, x.Unknown(key), equal); diff != "" {
			t.Errorf("Unknown(%q) (-want +got):\n%s", key, diff)
		}
	}
	doubts("", nil)
	picks, _ := x.Pick(want(asking("10.0.0.8")), now)
	doubts("", nil) // a write under way is no doubt
	x.MarkUnknown(picks[0].Current.Addr, 0, "key", at(1))
	x.MarkUnknown(picks[0].Current.Addr, 0, "key", at(2))
	x.MarkUnknown(ip("10.0.0.9"), 0, "other", at(3))
	x.MarkUnknown(ip("172.16.0.1"), 0, "other", at(4)) // in no pool
	// Host, pool and namespace are those of the pick.
	eight := ledger.Assumed{
		Key: "key", Host: ip(host1), Pool: "a", Charged: lease.ChargedNamespaces{"shop"}, Unknown: true, Since: at(2),
	}
	nine, far := ledger.Assumed{Key: "other", Unknown: true, Since: at(3)}, ledger.Assumed{Key: "other", Unknown: true, Since: at(4)}
	doubts("key", map[netip.Addr]ledger.Assumed{ip("10.0.0.8"): eight})
	doubts("other", map[netip.Addr]ledger.Assumed{ip("10.0.0.9"): nine, ip("172.16.0.1"): far})
	doubts("", map[netip.Addr]ledger.Assumed{ip("10.0.0.8"): eight, ip("10.0.0.9"): nine, ip("172.16.0.1"): far})
	doubts("nobody", map[netip.Addr]ledger.Assumed{})
	x.MarkUnknown(ip("10.0.0.9"), 7, "other", at(3))
	nine.Version = 7
	x.Settle(ip("10.0.0.9"), 7) // told late of what the write was for
	x.Settle(ip("10.0.0.8"), 0) // its object has gone: the write may still make it
	doubts("", map[netip.Addr]ledger.Assumed{ip("10.0.0.8"): eight, ip("10.0.0.9"): nine, ip("172.16.0.1"): far})
	x.Settle(ip("10.0.0.9"), 8)
	x.Settle(ip("10.0.0.1"), 8) // nobody writes it
	doubts("", map[netip.Addr]ledger.Assumed{ip("10.0.0.8"): eight, ip("172.16.0.1"): far})
	for range 2 { // twice does no harm
		for _, a := range ips("10.0.0.8", "10.0.0.9", "172.16.0.1") {
			x.Forget(a)
		}
	}
	doubts("", nil)
	if got := x.Pools.Counts("a", now).Free; got != 2 {
		t.Errorf("%d addresses are free, want 2", got)
	}
}
