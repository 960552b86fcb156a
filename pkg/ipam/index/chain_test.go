package index

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// labelled matches what has all of some labels.
type labelled map[string]string

func (l labelled) Matches(labels map[string]string) bool {
	for k, v := range l {
		if labels[k] != v {
			return false
		}
	}
	return true
}

func (l labelled) String() string { return fmt.Sprint(map[string]string(l)) }

// ofTier binds a pool to the namespaces that have the label tier; of "" to all.
func ofTier(tier string) option {
	return func(p *ipam.Pool) {
		if p.NamespaceSelector = (labelled{}); tier != "" {
			p.NamespaceSelector = labelled{"tier": tier}
		}
	}
}

func notDefault(p *ipam.Pool) { p.NotDefault = true }

// tiers makes namespaces known that have the label tier; of "" without it.
func tiers(of map[string]string) func(*Index) {
	return func(x *Index) {
		for ns, tier := range of {
			labels := map[string]string{"kubernetes.io/metadata.name": ns}
			if tier != "" {
				labels["tier"] = tier
			}
			x.Pools.SetNamespace(ns, labels)
		}
	}
}

// The order in which the pools of a namespace are tried: what is asked for, what is bound to it, the default chain.
func TestPickByTheChain(t *testing.T) {
	at := func(name string, third int, options ...option) ipam.Pool {
		return pool(t, name, fmt.Sprintf("10.0.%d.0/24", third), []string{fmt.Sprintf("10.0.%d.9", third)}, options...)
	}
	a := func(options ...option) ipam.Pool { return at("a", 1, options...) }
	b := func(options ...option) ipam.Pool { return at("b", 2, options...) }
	c := func(options ...option) ipam.Pool { return at("c", 3, options...) }
	gold := tiers(map[string]string{"shop": "gold", "bank": ""})
	full := func(pools ...string) func(*Index) {
		return func(x *Index) {
			gold(x)
			for _, p := range pools {
				x.take(p, map[string]string{"a": "10.0.1.9", "b": "10.0.2.9", "c": "10.0.3.9"}[p])
			}
		}
	}
	from := func(name string) func(*ipam.PickRequest) {
		return func(w *ipam.PickRequest) { w.Pools = []string{name} }
	}
	ahead := func(w *ipam.PickRequest) { w.Ahead, w.Host, w.Claim = true, netip.Addr{}, w.Namespace+"/c" }
	vm := func(w *ipam.PickRequest) { w.Owner, w.Who = "vm-1", "owner vm-1" }
	hint := func(pool string) string {
		return "; hint: see why: bcsnetctl explain namespace shop; to see the effect of binding the pool to it: bcsnetctl " +
			"pool bind " + pool + " --namespace shop --dry-run=server"
	}
	for name, tc := range map[string]pickCase{
		"bound by a selector": {
			pools: []ipam.Pool{a(), b(ofTier("gold"))}, before: gold, want: want(), picks: []string{"b 10.0.2.9"},
		},
		"a selector that does not match": {
			pools: []ipam.Pool{a(), b(ofTier("gold"))}, before: gold, want: want(inNamespace("bank")), picks: []string{"a 10.0.1.9"},
		},
		"either binds": {
			pools: []ipam.Pool{a(), b(ofTier("gold"), namespaces("bank"))}, before: gold, want: want(inNamespace("bank")),
			picks: []string{"b 10.0.2.9"},
		},
		"both bind": {
			pools: []ipam.Pool{a(), b(ofTier("gold"), namespaces("shop"))}, before: gold, want: want(), picks: []string{"b 10.0.2.9"},
		},
		"two selectors, equal priorities: by name": {
			pools: []ipam.Pool{c(ofTier("gold")), b(ofTier("gold")), a()}, before: gold, want: want(), picks: []string{"b 10.0.2.9"},
		},
		"two selectors, by priority": {
			pools: []ipam.Pool{c(ofTier("gold"), priority(1)), b(ofTier("gold")), a(priority(2))}, before: gold, want: want(),
			picks: []string{"c 10.0.3.9"},
		},
		"two selectors, the first is full": {
			pools: []ipam.Pool{c(ofTier("gold")), b(ofTier("gold")), a()}, before: full("b"), want: want(),
			picks: []string{"c 10.0.3.9"},
		},
		"a selector that matches all": {
			pools: []ipam.Pool{a(), b(ofTier(""))}, before: gold, want: want(inNamespace("bank")), picks: []string{"b 10.0.2.9"},
		},
		"a selector that matches none serves nobody": {
			pools: []ipam.Pool{b(ofTier("lead"))}, before: gold, want: want(),
			text: "NamespaceNotServed: none of the pools of host 192.168.0.1 serves namespace shop: b" + hint("b"),
		},
		"its own is full: never the default chain": {
			pools: []ipam.Pool{a(), b(ofTier("gold"))}, before: full("b"), want: want(),
			text: "PoolExhausted: no available IP for pod shop/a: pool b (10.0.2.0/24) has 0 of 1 addresses free, 1 active, 0 " +
				"reserved; namespace shop draws only from its own pools; hint: see who holds them: bcsnetctl ip list --pool b; add " +
				"addresses: bcsnetctl pool add-ip b RANGE",
		},
		"its own is cordoned: never the default chain": {
			pools: []ipam.Pool{a(), b(namespaces("shop"), cordoned)}, before: gold, want: want(),
			text: "PoolCordoned: no available IP for pod shop/a: pool b is cordoned; namespace shop draws only from its own pools; " +
				"hint: let it allocate addresses again: bcsnetctl pool uncordon b",
		},
		"its own is of another host: never the default chain": {
			pools: []ipam.Pool{a(), b(ofTier("gold"), hosts(host2))}, before: gold, want: want(),
			text: "NamespaceNotServed: none of the pools of host 192.168.0.1 serves namespace shop: a; it draws only from its own pools:" +
				" b; hint: see why: bcsnetctl explain namespace shop; to let the host draw from its own pools: " +
				"bcsnetctl pool add-host b 192.168.0.1",
		},
		"ahead, by a selector": {
			pools: []ipam.Pool{a(), b(ofTier("gold"))}, before: gold, want: want(ahead), picks: []string{"b 10.0.2.9"},
		},
		"ahead, its own is full": {
			pools: []ipam.Pool{a(), b(ofTier("gold"))}, before: full("b"), want: want(ahead),
			text: "PoolExhausted: no available IP for pod shop/a: pool b (10.0.2.0/24) has 0 of 1 addresses free, 1 active, 0 " +
				"reserved; namespace shop draws only from its own pools; hint: see who holds them: bcsnetctl ip list --pool b; add " +
				"addresses: bcsnetctl pool add-ip b RANGE",
		},

		"not default: passed over": {pools: []ipam.Pool{a(notDefault), b()}, want: want(), picks: []string{"b 10.0.2.9"}},
		"not default: passed over ahead of pods, too": {
			pools: []ipam.Pool{a(notDefault), b()}, want: want(ahead), picks: []string{"b 10.0.2.9"},
		},
		"not default: alone": {
			pools: []ipam.Pool{a(notDefault)}, want: want(),
			text: "NamespaceNotServed: none of the pools of host 192.168.0.1 serves namespace shop: a" + hint("a"),
		},
		"not default: named": {pools: []ipam.Pool{a(notDefault), b()}, want: want(from("a")), picks: []string{"a 10.0.1.9"}},
		"not default: named ahead of pods": {
			pools: []ipam.Pool{a(notDefault), b()}, want: want(ahead, from("a")), picks: []string{"a 10.0.1.9"},
		},
		"not default: its network named": {
			pools: []ipam.Pool{a(notDefault, network("store")), b()}, want: want(ofNetwork("store")), picks: []string{"a 10.0.1.9"},
		},
		"not default: named by a namespace that has something of its own": {
			pools: []ipam.Pool{a(notDefault), b(ofTier("gold"))}, before: gold, want: want(from("a")), picks: []string{"a 10.0.1.9"},
		},
		"not default, and bound": {
			pools: []ipam.Pool{a(notDefault, namespaces("shop")), b()}, want: want(), picks: []string{"a 10.0.1.9"},
		},
		"not default, and bound to others: naming it does not help": {
			pools: []ipam.Pool{a(notDefault, namespaces("bank")), b()}, want: want(from("a")),
			text: "NamespaceNotServed: pool a does not serve namespace shop" + hint("a"),
		},
		"not default: its address alone does not name it": {
			pools: []ipam.Pool{a(notDefault), b()}, want: want(asking("10.0.1.9")),
			text: "NamespaceNotServed: address 10.0.1.9 is in pool a, which serves only requests that name it; hint: ask for pool a, too",
		},
		"not default: its address and its name": {
			pools: []ipam.Pool{a(notDefault), b()}, want: want(asking("10.0.1.9"), from("a")), picks: []string{"a 10.0.1.9"},
		},
		"a pool of the default chain, named by a namespace that has something of its own": {
			pools: []ipam.Pool{a(), b(ofTier("gold"))}, before: gold, want: want(from("a")),
			text: "NamespaceNotServed: pool a does not serve namespace shop" + hint("a"),
		},

		"labels that are not known yet": {
			pools: []ipam.Pool{a(), b(ofTier("gold"))}, before: tiers(map[string]string{"bank": ""}), want: want(),
			text: "Unavailable: pod shop/a is given no address yet: which pools serve namespace shop depends on its labels, " +
				"which this replica does not know; hint: ask again; see: kubectl get namespace shop --show-labels",
		},
		"labels that are not known yet, and a pool by name": {
			pools: []ipam.Pool{a(), b(ofTier("gold")), c(namespaces("shop"))}, want: want(), picks: []string{"c 10.0.3.9"},
		},
		"labels that nobody asks for": {pools: []ipam.Pool{a()}, want: want(), picks: []string{"a 10.0.1.9"}},
		"an owner is of no namespace that Kubernetes knows": {
			pools: []ipam.Pool{a(), b(ofTier("gold"))}, want: want(vm), picks: []string{"a 10.0.1.9"},
		},
	} {
		t.Run(name, tc.check)
	}
}

// Who is bound to a pool follows the labels of namespaces and the selectors of pools; what is held stays.
func TestLabelsChange(t *testing.T) {
	a := pool(t, "a", "10.0.1.0/24", []string{"10.0.1.8-10.0.1.9"})
	b := func(options ...option) ipam.Pool {
		return pool(t, "b", "10.0.2.0/24", []string{"10.0.2.8-10.0.2.9"}, options...)
	}
	x := indexOf(a, b(ofTier("gold")))
	step := func(what string, changed, wantChanged []string, pool string) {
		t.Helper()
		if diff := cmp.Diff(wantChanged, changed); diff != "" {
			t.Errorf("%s: pools that changed (-want +got):\n%s", what, diff)
		}
		picks, refusal := x.Propose(want(), now)
		if len(picks) != 1 || picks[0].Pool.Name != pool {
			t.Errorf("%s: %v, %s, want an address of %s", what, picked(picks), refused(refusal), pool)
		}
	}
	gold, plain := map[string]string{"tier": "gold"}, map[string]string{}
	step("made", x.Pools.SetNamespace("shop", plain), nil, "a")
	step("labelled", x.Pools.SetNamespace("shop", gold), []string{"b"}, "b")
	step("labelled again", x.Pools.SetNamespace("shop", maps.Clone(gold)), nil, "b")
	held := leased("10.0.2.8", "b", 1)
	x.Feed.Watched(held)
	step("label gone", x.Pools.SetNamespace("shop", plain), []string{"b"}, "a")
	if diff := leaseDiff([]lease.Lease{held}, x.Leases.ByHost(ip(host1))); diff != "" {
		t.Errorf("leases after the label went (-want +got):\n%s", diff)
	}
	step("label back", x.Pools.SetNamespace("shop", gold), []string{"b"}, "b")
	x.Pools.SetPool(b(ofTier("lead")))
	step("another selector", nil, nil, "a")
	x.Pools.SetPool(b(ofTier("lead"), namespaces("shop")))
	step("by name, too", nil, nil, "b")
	x.Pools.SetPool(b(ofTier("gold"), namespaces("shop")))
	step("the label gone while bound by name", x.Pools.SetNamespace("shop", plain), []string{"b"}, "b")
	x.Pools.SetPool(b(ofTier("gold")))
	step("no longer by name", nil, nil, "a")
	step("labelled once more", x.Pools.SetNamespace("shop", gold), []string{"b"}, "b")
	if named, matched := x.Pools.NamespacesOf("b"); named != 0 || matched != 1 {
		t.Errorf("pool b is bound to %d namespaces by name and %d by labels, want 0 and 1", named, matched)
	}
	changed := x.Pools.RemoveNamespace("shop")
	if own := x.Pools.Own("shop", netip.Addr{}); !slices.Equal(changed, []string{"b"}) || len(own) > 0 {
		t.Errorf("removed: %v changed, and %v is bound", changed, own)
	}
	checkRules(t, x)
	step("made again, with its label", x.Pools.SetNamespace("shop", gold), []string{"b"}, "b")
	x.Pools.RemovePool("b")
	step("its pool gone", nil, nil, "a")
	if changed := x.Pools.RemoveNamespace("shop"); len(changed)+len(x.core.state.Pools.Namespaces.Labels) > 0 {
		t.Errorf("pools that are gone have changed: %v; labels are kept: %v", changed, x.core.state.Pools.Namespaces.Labels)
	}
	checkRules(t, x)
}

// Labels change while requests run: each is served by what counted before or after the change, and by nothing else.
func TestLabelsChangeWhilePodsAsk(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.1.0/24", []string{"10.0.1.0/24"}), pool(t, "b", "10.0.2.0/24", []string{"10.0.2.0/24"},
		ofTier("gold")), pool(t, "c", "10.0.3.0/24", []string{"10.0.3.0/24"}, namespaces("bank")))
	tiers(map[string]string{"shop": "gold", "bank": "gold"})(x)
	var parts sync.WaitGroup
	for i := range 4 {
		parts.Go(func() {
			for k := range 100 {
				picks, refusal := x.Pick(want(func(w *ipam.PickRequest) { w.Key = fmt.Sprint(i, k) }), now)
				if refusal != nil || picks[0].Pool.Name == "c" {
					t.Errorf("%v, %s", picked(picks), refused(refusal))
				}
				for _, p := range picks {
					x.Forget(p.Current.Addr)
				}
			}
		})
	}
	for i := range 200 {
		tiers(map[string]string{"shop": []string{"gold", ""}[i%2], "bank": []string{"", "gold"}[i%2]})(x)
	}
	parts.Wait()
}

// TestChainOfBlocks: where blocks, and the pools that they are of, stand in the chain of a namespace, and what it has
// of its own by them.
func TestChainOfBlocks(t *testing.T) {
	at := func(name string, third int, options ...option) ipam.Pool {
		return pool(t, name, fmt.Sprintf("10.0.%d.0/24", third), []string{fmt.Sprintf("10.0.%d.0/24", third)}, options...)
	}
	auto, hand := at("auto", 1, splitInto(26)), at("hand", 2, splitInto(26), byBindAlone)
	bound := at("bound", 3, splitInto(26), namespaces("shop"))
	flat := at("flat", 4)
	for name, tc := range map[string]struct {
		pools              []ipam.Pool
		host               string
		own, tried, passed []string
	}{
		"it could be given a block": {
			pools: []ipam.Pool{auto, flat}, own: []string{"auto"},
			tried: []string{"auto SplitIntoBlocks"}, passed: []string{"flat BehindItsOwn"},
		},
		"not on that host": {
			pools: []ipam.Pool{auto, at("flat", 4, hosts(host2))}, host: host2,
			tried: []string{"flat InDefaultChain"}, passed: []string{"auto NotOnHost"},
		},
		"it has one, and of others none": {
			pools: []ipam.Pool{auto, hand, flat, aBlock(t, hand, "10.0.2.64/26", "shop"), aBlock(t, hand, "10.0.2.0/26", "bank")},
			own:   []string{"hand", "auto"},
			tried: []string{"hand-10-0-2-64-26 OwnBlock", "hand SplitIntoBlocks", "auto SplitIntoBlocks"},
			passed: []string{
				"flat BehindItsOwn",
			},
		},
		"none is given by itself": {
			pools: []ipam.Pool{hand, flat}, tried: []string{"flat InDefaultChain", "hand GivesNoBlock"},
		},
		"nor besides another": {
			pools: []ipam.Pool{auto, hand}, own: []string{"auto"},
			tried: []string{"auto SplitIntoBlocks"}, passed: []string{"hand GivesNoBlock"},
		},
		"bound to it": {
			pools: []ipam.Pool{auto, bound, aBlock(t, bound, "10.0.3.64/26", "shop")}, own: []string{"bound"},
			tried: []string{"bound-10-0-3-64-26 OwnBlock", "bound BoundByName"}, passed: []string{"auto BehindItsOwn"},
		},
		"bound to others": {
			pools: []ipam.Pool{at("bound", 3, splitInto(26), namespaces("bank")), flat},
			tried: []string{"flat InDefaultChain"}, passed: []string{"bound BoundElsewhere"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(tc.pools...)
			var host netip.Addr
			if tc.host != "" {
				host = ip(tc.host)
			}
			var tried, passed []string
			for _, p := range x.Pools.Chain("shop", host) {
				if text := p.Pool + " " + string(p.Standing); p.Tried {
					tried = append(tried, text)
				} else {
					passed = append(passed, text)
				}
			}
			if diff := cmp.Diff([3][]string{tc.own, tc.tried, tc.passed},
				[3][]string{x.Pools.Own("shop", host), tried, passed}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestChooseAll: selectors of equal priority that match one namespace, one that matches all, and one that matches none.
func TestChooseAll(t *testing.T) {
	at := func(name string, third int, options ...option) ipam.Pool {
		return pool(t, name, fmt.Sprintf("10.0.%d.0/24", third), []string{fmt.Sprintf("10.0.%d.9", third)}, options...)
	}
	x := indexOf(at("b", 1, ofTier("gold")), at("a", 2, ofTier("gold")), at("every", 3, everyNamespace),
		at("none", 4, ofTier("no")), at("open", 5))
	tiers(map[string]string{"shop": "gold", "bank": ""})(x)
	for ns, want := range map[string][]string{"shop": {"a", "b", "every"}, "bank": {"every"}} {
		if got := x.Pools.Own(ns, netip.Addr{}); !slices.Equal(got, want) {
			t.Errorf("namespace %s has %v of its own, want %v", ns, got, want)
		}
	}
	for i, pools := range [][]string{{"a"}, {"b"}, {"every"}, nil} { // by name, and then the one that matches all
		picks, refusal := x.Pick(want(func(w *ipam.PickRequest) { w.Key = fmt.Sprint(i) }), now)
		var got []string
		for _, p := range picks {
			got = append(got, p.Pool.Name)
		}
		if !slices.Equal(got, pools) || pools == nil &&
			refused(refusal) != "PoolExhausted: no available IP for pod shop/a: pool a (10.0.2.0/24) has 0 of 1 addresses "+
				"free, 0 active, 0 reserved, 1 otherwise in use; pool b (10.0.1.0/24) has 0 of 1 addresses free, 0 active, 0 reserved, 1 otherwise in use; pool every (10.0.3.0/24) has 0 of 1 addresses free, 0 active, 0 reserved, 1 otherwise in use; namespace shop draws only from its own pools; hint: see who holds them: bcsnetctl ip list --pool a; add addresses: bcsnetctl pool add-ip a RANGE" {
			t.Errorf("request %d: %v, %s", i, got, refused(refusal))
		}
	}
	if named, matched := x.Pools.NamespacesOf("none"); named+matched != 0 {
		t.Errorf("pool none is bound to %d namespaces", named+matched)
	}
}

// everyNamespace has a pool choose namespaces by a selector that matches each.
func everyNamespace(p *ipam.Pool) { p.NamespaceSelector = allLabels{} }

type allLabels struct{}

func (allLabels) Matches(map[string]string) bool { return true }

func (allLabels) String() string { return "!nobody-has-it" }

// What Chain says of a pool is what Pick does with it.
func TestChain(t *testing.T) {
	at := func(name string, third int, options ...option) ipam.Pool {
		return pool(t, name, fmt.Sprintf("10.0.%d.0/24", third), []string{fmt.Sprintf("10.0.%d.9", third)}, options...)
	}
	x := indexOf(
		at("open", 1), at("high", 2, priority(9), cordoned), at("gold", 3, ofTier("gold")),
		at("named", 4, namespaces("shop")),
		at("bank", 5, namespaces("bank")), at("store", 6, notDefault), at("away", 7, hosts(host2)), at("nowhere", 8, hosts()),
		at("lead", 9, ofTier("lead"), priority(1)),
		at("both", 10, namespaces("shop"), ofTier("gold"), notDefault, priority(-1)),
	)
	tiers(map[string]string{"shop": "gold", "fresh": ""})(x)
	const stopped = " (cordoned)"
	for name, tc := range map[string]struct {
		namespace, host string
		tried, passed   []string
	}{
		"of its own, on any host": {
			namespace: "shop",
			tried:     []string{"gold BoundByLabels", "named BoundByName", "both BoundByName"},
			passed: []string{
				"high BehindItsOwn" + stopped, "lead BoundElsewhere", "away BehindItsOwn", "bank BoundElsewhere",
				"nowhere NotOnHost", "open BehindItsOwn", "store OnlyByName",
			},
		},
		"nothing of its own, on one host": {
			namespace: "fresh", host: host1,
			tried: []string{"high InDefaultChain" + stopped, "open InDefaultChain"},
			passed: []string{
				"lead BoundElsewhere", "away NotOnHost", "bank BoundElsewhere", "gold BoundElsewhere", "named BoundElsewhere",
				"nowhere NotOnHost", "store OnlyByName", "both BoundElsewhere",
			},
		},
		"of its own, on a host where that is not": {
			namespace: "bank", host: host2,
			passed: []string{
				"high NotOnHost" + stopped, "lead BoundElsewhere", "away BehindItsOwn", "bank NotOnHost", "gold BoundElsewhere",
				"named BoundElsewhere", "nowhere NotOnHost", "open NotOnHost", "store OnlyByName", "both BoundElsewhere",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var host netip.Addr
			if tc.host != "" {
				host = ip(tc.host)
			}
			var tried, passed []string
			for _, p := range x.Pools.Chain(tc.namespace, host) {
				text := p.Pool + " " + string(p.Standing)
				if p.Stop.Cause != explain.Serves {
					text += " (" + p.Stop.Why() + ")"
				}
				if p.Tried {
					tried = append(tried, text)
				} else {
					passed = append(passed, text)
				}
			}
			if diff := cmp.Diff([2][]string{tc.tried, tc.passed}, [2][]string{tried, passed}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if host.IsValid() {
				picks, _ := x.Propose(want(inNamespace(tc.namespace), onHost(tc.host)), now)
				if len(picks) > 0 != (len(tried) > 0) {
					t.Errorf("%v picked, %v tried", picked(picks), tried)
				}
			}
		})
	}
	if got := x.Pools.Own("shop", netip.Addr{}); !slices.Equal(got, []string{"gold", "named", "both"}) {
		t.Errorf("namespace shop has %v of its own", got)
	}
}
