package index

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Every refusal of Pick, word for word: operators read them, and scripts match some of them.
func TestPickRefuses(t *testing.T) {
	a := func(options ...option) ipam.Pool {
		return pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.9"}, options...)
	}
	b := func(options ...option) ipam.Pool {
		return pool(t, "b", "10.0.1.0/24", []string{"10.0.1.9"}, options...)
	}
	many := func(options ...option) (pools []ipam.Pool) {
		for i := range 7 {
			pools = append(pools, pool(t, fmt.Sprint("p", i), fmt.Sprintf("10.1.%d.0/24", i), nil, options...))
		}
		return pools
	}
	full := func(x *Index) { x.take("a", "10.0.0.8", "10.0.0.9") }
	for name, tc := range map[string]struct {
		pools  []ipam.Pool
		before func(*Index)
		want   ipam.PickRequest
		text   string
	}{
		"no pools": {
			want: want(),
			text: "HostNotInPool: host 192.168.0.1 does not exist in pools; hint: add it with: bcsnetctl pool add-host POOL " +
				"192.168.0.1",
		},
		"a pool of no host": {
			pools: []ipam.Pool{a(hosts())}, want: want(),
			text: "HostNotInPool: host 192.168.0.1 does not exist in pools; hint: add it with: bcsnetctl pool add-host POOL " +
				"192.168.0.1",
		},
		"pools of another host, and a network asked for": {
			pools: []ipam.Pool{a(hosts(host2), network("blue"))}, want: want(ofNetwork("blue")),
			text: "HostNotInPool: host 192.168.0.1 does not exist in pools; hint: add it with: bcsnetctl pool add-host POOL " +
				"192.168.0.1",
		},
		"pools of other namespaces": {
			pools: []ipam.Pool{a(namespaces("x")), b(namespaces("y"), priority(1))}, want: want(),
			text: "NamespaceNotServed: none of the pools of host 192.168.0.1 serves namespace shop: b, a; hint: see why: bcsnetctl explain " +
				"namespace shop; to see the effect of binding the pool to it: bcsnetctl pool bind b --namespace shop --dry-run=server",
		},
		"many pools of other namespaces": {
			pools: many(namespaces("x")), want: want(),
			text: "NamespaceNotServed: none of the pools of host 192.168.0.1 serves namespace shop: p0, p1, p2, p3, p4, and 2 " +
				"more pools; hint: see why: bcsnetctl explain " +
				"namespace shop; to see the effect of binding the pool to it: bcsnetctl pool bind p0 --namespace shop --dry-run=server",
		},
		"a namespace bound to a pool of another host": {
			pools: []ipam.Pool{a(), b(namespaces("shop"), hosts(host2))}, want: want(),
			text: "NamespaceNotServed: none of the pools of host 192.168.0.1 serves namespace shop: a; it draws " +
				"only from its own pools: b; hint: see why: bcsnetctl explain " +
				"namespace shop; to let the host draw from its own pools: bcsnetctl pool add-host b 192.168.0.1",
		},
		"an unknown network": {
			pools: []ipam.Pool{a(network("blue")), b()}, want: want(ofNetwork("red")),
			text: "NetworkNotFound: no pool that host 192.168.0.1 may draw from for namespace shop is part of network red; " +
				"hint: set spec.network of a pool, or ask for another network",
		},
		"a network of other hosts": {
			pools: []ipam.Pool{a(network("blue"), hosts(host2)), b()}, want: want(ofNetwork("blue")),
			text: "NetworkNotFound: no pool that host 192.168.0.1 may draw from for namespace shop is part of network blue; " +
				"hint: set spec.network of a pool, or ask for another network",
		},
		"exhausted": {
			pools: []ipam.Pool{a()}, before: full, want: want(),
			text: "PoolExhausted: no available IP for pod shop/a: pool a (10.0.0.0/24) has 0 of 2 addresses free, 2 active, 0 " +
				"reserved" +
				"; hint: see who holds them: bcsnetctl ip list --pool a; add addresses: bcsnetctl pool add-ip a RANGE",
		},
		"exhausted by pods that are gone": {
			pools: []ipam.Pool{a()}, before: func(x *Index) { full(x); x.Pools.SetGone(map[string]int{"a": 2, "b": 1}) }, want: want(),
			text: "PoolExhausted: no available IP for pod shop/a: pool a (10.0.0.0/24) has 0 of 2 addresses free, 2 active " +
				"(2 for pods that are gone), 0 reserved; hint: see the addresses of pods that are gone: bcsnetctl " +
				"doctor --only leaks; see who holds them: bcsnetctl ip list --pool a; add addresses: bcsnetctl pool " +
				"add-ip a RANGE",
		},
		"exhausted by reservations, a node and a request under way": {
			pools: []ipam.Pool{pool(t, "a", "10.0.0.0/24", []string{"10.0.0.6-10.0.0.9"})},
			before: func(x *Index) {
				x.take("a", "10.0.0.6")
				x.Feed.Watched(reserved("10.0.0.7", "a", 2))
				x.Pools.SetNode("node-1", node("10.0.0.8"))
				x.MarkUnknown(ip("10.0.0.9"), 0, "other", now)
			},
			want: want(),
			text: "PoolExhausted: no available IP for pod shop/a: pool a (10.0.0.0/24) has 0 of 4 addresses free, 1 active, 1 " +
				"reserved, 2 otherwise in use" +
				"; hint: see who holds them: bcsnetctl ip list --pool a; add addresses: bcsnetctl pool add-ip a RANGE",
		},
		"exhausted while some are cooling": {
			pools: []ipam.Pool{pool(t, "a", "10.0.0.0/24", []string{"10.0.0.6-10.0.0.9"}, coolFor(time.Minute))},
			before: func(x *Index) {
				x.take("a", "10.0.0.6")
				for i, addr := range []string{"10.0.0.7", "10.0.0.8", "10.0.0.9"} {
					x.Feed.Watched(gaveUp(addr, "a", x.Feed.Seen()+1, -48+i))
				}
			},
			want: want(),
			text: "PoolExhausted: no available IP for pod shop/a: pool a (10.0.0.0/24) has 0 of 4 addresses free, 1 active, 0 " +
				"reserved" +
				", 3 are cooling, the next is free in 12s; hint: ask again in 12s, or add addresses: bcsnetctl pool add-ip a RANGE",
		},
		"no addresses": {
			pools: []ipam.Pool{pool(t, "a", "10.0.0.0/24", nil)}, want: want(),
			text: "PoolExhausted: no available IP for pod shop/a: pool a (10.0.0.0/24) has 0 of 0 addresses free, 0 active, 0 " +
				"reserved" +
				"; hint: see who holds them: bcsnetctl ip list --pool a; add addresses: bcsnetctl pool add-ip a RANGE",
		},
		"many exhausted": {
			pools: many(), want: want(),
			text: "PoolExhausted: no available IP for pod shop/a: pool p0 (10.1.0.0/24) has 0 of 0 addresses free, 0 active, " +
				"0 reserved" +
				"; pool p1 (10.1.1.0/24) has 0 of 0 addresses free, 0 active, 0 reserved" +
				"; pool p2 (10.1.2.0/24) has 0 of 0 addresses free, 0 active, 0 reserved" +
				"; pool p3 (10.1.3.0/24) has 0 of 0 addresses free, 0 active, 0 reserved" +
				"; pool p4 (10.1.4.0/24) has 0 of 0 addresses free, 0 active, 0 reserved; and 2 more pools" +
				"; hint: see who holds them: bcsnetctl ip list --pool p0; add addresses: bcsnetctl pool add-ip p0 RANGE",
		},
		"one cordoned, one exhausted: the hint is about the exhausted one": {
			pools: []ipam.Pool{a(), b(cordoned, priority(1))}, before: full, want: want(),
			text: "PoolExhausted: no available IP for pod shop/a: pool b is cordoned; pool a (10.0.0.0/24) has 0 of 2 " +
				"addresses free, 2 active, 0 reserved" +
				"; hint: see who holds them: bcsnetctl ip list --pool a; add addresses: bcsnetctl pool add-ip a RANGE",
		},
		"all cordoned or being deleted": {
			pools: []ipam.Pool{a(cordoned), b(terminating)}, want: want(),
			text: "PoolCordoned: no available IP for pod shop/a: pool a is cordoned; pool b is being deleted" +
				"; hint: let it allocate addresses again: bcsnetctl pool uncordon a",
		},
		"being deleted": {
			pools: []ipam.Pool{a(terminating, cordoned)}, want: want(),
			text: "PoolCordoned: no available IP for pod shop/a: pool a is being deleted; hint: see: bcsnetctl pool describe a",
		},
		"not usable": {
			pools: []ipam.Pool{a(problem("mask 33 is not between 1 and 32"))}, want: want(),
			text: "PoolCordoned: no available IP for pod shop/a: pool a is not usable: mask 33 is not between 1 and 32; hint: " +
				"see: bcsnetctl pool describe a",
		},
		"one family exhausted: the hint is about that one": {
			pools:  []ipam.Pool{a(network("blue")), pool(t, "a6", "2001:db8::/64", []string{"2001:db8::9"}, network("blue"))},
			before: func(x *Index) { x.take("a6", "2001:db8::9") }, want: want(),
			text: "PoolExhausted: no available IP for pod shop/a: pool a (10.0.0.0/24) has 2 of 2 addresses free, 0 active, 0 " +
				"reserved" +
				"; pool a6 (2001:db8::/64) has 0 of 1 addresses free, 1 active, 0 reserved" +
				"; hint: see who holds them: bcsnetctl ip list --pool a6; add addresses: bcsnetctl pool add-ip a6 RANGE",
		},
		"one family cordoned": {
			pools: []ipam.Pool{
				a(network("blue")), pool(t, "a6", "2001:db8::/64", []string{"2001:db8::9"}, network("blue"), cordoned),
			}, want: want(),
			text: "PoolCordoned: no available IP for pod shop/a: pool a (10.0.0.0/24) has 2 of 2 addresses free, 0 active, 0 " +
				"reserved; pool a6 is cordoned" +
				"; hint: let it allocate addresses again: bcsnetctl pool uncordon a6",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(tc.pools...)
			if tc.before != nil {
				tc.before(x)
			}
			picks, refusal := x.Pick(tc.want, now)
			if diff := cmp.Diff(tc.text, refused(refusal)); diff != "" {
				t.Errorf("refusal (-want +got):\n%s\npicks: %v", diff, picked(picks))
			}
		})
	}
}

func TestReasonTable(t *testing.T) {
	seen := map[ipam.Reason]bool{}
	for _, r := range ipam.ReasonTable() {
		if seen[r.Reason] {
			t.Errorf("%s is listed twice", r.Reason)
		}
		seen[r.Reason] = true
		if r.Meaning == "" || r.Code != 1 && r.Code != 2 {
			t.Errorf("%s has code %d and meaning %q", r.Reason, r.Code, r.Meaning)
		}
	}
	for _, r := range declaredReasons(t) {
		if !seen[r] {
			t.Errorf("%s is not documented", r)
		}
	}
}

func TestRefusalHint(t *testing.T) {
	r := ipam.Refuse(ipam.ReasonNotFound, "no pool %q", "a")
	if got, want := r.Error(), `no pool "a"`; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	hinted := r.WithHint("try %d%%", 5)
	if got, want := hinted.Error(), `no pool "a"; hint: try 5%`; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if r.Hint != "" {
		t.Error("WithHint changed the refusal it was called on")
	}
}

// declaredReasons reads the constants of type Reason from the source.
func declaredReasons(t *testing.T) (reasons []ipam.Reason) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := v.Type.(*ast.Ident); ok && of.Name == "Reason" {
			word, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			reasons = append(reasons, ipam.Reason(word))
		}
		return true
	})
	if len(reasons) == 0 {
		t.Fatal("found no reasons")
	}
	return reasons
}
