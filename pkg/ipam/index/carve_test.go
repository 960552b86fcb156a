package index

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

func childOf(parent string) option { return func(p *ipam.Pool) { p.Parent = parent } }

func noHosts(p *ipam.Pool) { p.Hosts, p.HostSubnets = nil, nil }

func carved(t testing.TB, entries ...string) option {
	t.Helper()
	return func(p *ipam.Pool) { p.Carved = mustSet(t, entries...) }
}

// part makes a pool of 10.0.0.0/24.
func part(t testing.TB, name, addresses string, options ...option) ipam.Pool {
	t.Helper()
	return pool(t, name, "10.0.0.0/24", []string{addresses}, options...)
}

// Which children a parent can have, and what is said of the others. The parent has what the case says is left of it.
func TestWhatFitsAParent(t *testing.T) {
	blue := func(options ...option) ipam.Pool { return part(t, "blue", "10.0.0.10-10.0.0.99", options...) }
	eng := func(addresses string, options ...option) ipam.Pool {
		return part(t, "eng", addresses, slices.Concat([]option{childOf("blue")}, options)...)
	}
	for name, tc := range map[string]struct {
		pools    []ipam.Pool
		problems map[string]string
		left     string
	}{
		"a part": {[]ipam.Pool{blue(), eng("10.0.0.20-10.0.0.29")}, nil, "10.0.0.10-10.0.0.19, 10.0.0.30-10.0.0.99"},
		"two parts": {
			[]ipam.Pool{blue(), eng("10.0.0.20-10.0.0.29"), part(t, "ops", "10.0.0.30-10.0.0.39", childOf("blue"))}, nil,
			"10.0.0.10-10.0.0.19, 10.0.0.40-10.0.0.99",
		},
		"parts that are all of it": {
			[]ipam.Pool{blue(), eng("10.0.0.10-10.0.0.49"), part(t, "ops", "10.0.0.50-10.0.0.99", childOf("blue"))}, nil, "",
		},
		"no addresses yet": {
			[]ipam.Pool{blue(), pool(t, "eng", "10.0.0.0/24", nil, childOf("blue"))}, nil, "10.0.0.10-10.0.0.99",
		},
		"the gateway and the network address do not count": {
			[]ipam.Pool{part(t, "blue", "10.0.0.0/25"), eng("10.0.0.0-10.0.0.9")}, nil, "10.0.0.10-10.0.0.127",
		},
		"no parent": {
			[]ipam.Pool{eng("10.0.0.20-10.0.0.29")}, map[string]string{"eng": "parent blue does not exist"}, "",
		},
		"its own parent": {
			[]ipam.Pool{blue(childOf("blue"))}, map[string]string{"blue": "a pool cannot be its own parent"}, "",
		},
		"each other's parent": {
			[]ipam.Pool{blue(childOf("eng")), eng("10.0.0.20-10.0.0.29")}, map[string]string{
				"blue": "parent eng has a parent itself, blue: a child cannot have children",
				"eng":  "parent blue has a parent itself, eng: a child cannot have children",
			}, "",
		},
		"a child of a child": {
			[]ipam.Pool{blue(), eng("10.0.0.20-10.0.0.29"), part(t, "web", "10.0.0.20-10.0.0.21", childOf("eng"))},
			map[string]string{
				"web": "parent eng has a parent itself, blue: a child cannot have children",
			}, "10.0.0.10-10.0.0.19, 10.0.0.30-10.0.0.99",
		},
		"a parent that cannot be used": {
			[]ipam.Pool{blue(problem("bad route")), eng("10.0.0.20-10.0.0.29")},
			map[string]string{"blue": "bad route", "eng": "parent blue cannot be used: bad route"}, "",
		},
		"a problem of its own comes first": {
			[]ipam.Pool{blue(), eng("10.0.0.20-10.0.0.29", problem("bad route"))},
			map[string]string{"eng": "bad route"}, "10.0.0.10-10.0.0.99",
		},
		"reaches beyond": {
			[]ipam.Pool{blue(), eng("10.0.0.90-10.0.0.120")}, map[string]string{
				"eng": "bad ip-pool 10.0.0.90-10.0.0.120, EPG ip-pool must be a subset of network 10.0.0.0/24: " +
					"parent blue does not have 10.0.0.100-10.0.0.120",
			}, "10.0.0.10-10.0.0.99",
		},
		"all of it": {
			[]ipam.Pool{blue(), eng("10.0.0.10-10.0.0.99")}, map[string]string{
				"eng": "bad ip-pool 10.0.0.10-10.0.0.99, EPG ip-pool must be a subset of network 10.0.0.0/24: " +
					"it has all addresses of parent blue",
			}, "10.0.0.10-10.0.0.99",
		},
		"another net": {
			[]ipam.Pool{blue(), pool(t, "eng", "10.0.1.0/24", []string{"10.0.1.20-10.0.1.29"}, childOf("blue"))},
			map[string]string{
				"eng": "bad ip-pool 10.0.1.20-10.0.1.29, EPG ip-pool must be a subset of network 10.0.0.0/24: " +
					"its net and mask, 10.0.1.0/24, differ from parent blue",
			}, "10.0.0.10-10.0.0.99",
		},
		"another mask": {
			[]ipam.Pool{blue(), pool(t, "eng", "10.0.0.0/25", []string{"10.0.0.20-10.0.0.29"}, childOf("blue"))},
			map[string]string{
				"eng": "bad ip-pool 10.0.0.20-10.0.0.29, EPG ip-pool must be a subset of network 10.0.0.0/24: " +
					"its net and mask, 10.0.0.0/25, differ from parent blue",
			}, "10.0.0.10-10.0.0.99",
		},
		"the other family": {
			[]ipam.Pool{blue(), pool(t, "eng", "2001:db8::/64", []string{"2001:db8::20-2001:db8::29"}, childOf("blue"))},
			map[string]string{
				"eng": "bad ip-pool 2001:db8::20-2001:db8::29, EPG ip-pool must be a subset of network 10.0.0.0/24: " +
					"its net and mask, 2001:db8::/64, differ from parent blue",
			}, "10.0.0.10-10.0.0.99",
		},
		"the older of two": {
			[]ipam.Pool{
				blue(), eng("10.0.0.20-10.0.0.29", created(9)),
				part(t, "ops", "10.0.0.29-10.0.0.39", childOf("blue"), created(1)),
			}, map[string]string{
				"eng": "10.0.0.29 is also in pool ops, a child of parent blue that comes first: children never overlap",
			}, "10.0.0.10-10.0.0.28, 10.0.0.40-10.0.0.99",
		},
		"of one age: by name": {
			[]ipam.Pool{blue(), part(t, "ops", "10.0.0.29-10.0.0.39", childOf("blue")), eng("10.0.0.20-10.0.0.29")},
			map[string]string{
				"ops": "10.0.0.29 is also in pool eng, a child of parent blue that comes first: children never overlap",
			}, "10.0.0.10-10.0.0.19, 10.0.0.30-10.0.0.99",
		},
		"one that is not stored yet comes last": {
			[]ipam.Pool{
				blue(), eng("10.0.0.20-10.0.0.29", func(p *ipam.Pool) { p.Created = time.Time{} }),
				part(t, "ops", "10.0.0.29-10.0.0.39", childOf("blue")),
			}, map[string]string{
				"eng": "10.0.0.29 is also in pool ops, a child of parent blue that comes first: children never overlap",
			}, "10.0.0.10-10.0.0.28, 10.0.0.40-10.0.0.99",
		},
		"one that loses takes nothing from a third": {
			[]ipam.Pool{
				blue(), eng("10.0.0.20-10.0.0.29", created(1)), part(t, "ops", "10.0.0.29-10.0.0.39", childOf("blue"),
					created(2)),
				part(t, "web", "10.0.0.39-10.0.0.49", childOf("blue"), created(3)),
			}, map[string]string{
				"ops": "10.0.0.29 is also in pool eng, a child of parent blue that comes first: children never overlap",
			}, "10.0.0.10-10.0.0.19, 10.0.0.30-10.0.0.38, 10.0.0.50-10.0.0.99",
		},
		"the network of its parent, or none": {
			[]ipam.Pool{
				blue(network("prod")), eng("10.0.0.20-10.0.0.29", network("prod")),
				part(t, "ops", "10.0.0.30-10.0.0.39", childOf("blue")),
			}, nil, "10.0.0.10-10.0.0.19, 10.0.0.40-10.0.0.99",
		},
		"a network where its parent is in none": {
			[]ipam.Pool{blue(), eng("10.0.0.20-10.0.0.29", network("lab"))}, nil, "10.0.0.10-10.0.0.19, 10.0.0.30-10.0.0.99",
		},
		"another network": {
			[]ipam.Pool{blue(network("prod")), eng("10.0.0.20-10.0.0.29", network("lab"))}, map[string]string{
				"eng": "its network lab is not prod, the network of parent blue: a group is part of its parent's network",
			}, "10.0.0.10-10.0.0.99",
		},
		"many ranges outside": {
			[]ipam.Pool{blue(), pool(t, "eng", "10.0.0.0/24", []string{
				"10.0.0.2", "10.0.0.4", "10.0.0.6", "10.0.0.8", "10.0.0.100", "10.0.0.102", "10.0.0.20",
			}, childOf("blue"))}, map[string]string{
				"eng": "bad ip-pool 10.0.0.2, 10.0.0.4, 10.0.0.6, 10.0.0.8, 10.0.0.20, and 2 more ranges, " +
					"EPG ip-pool must be a subset of network 10.0.0.0/24: " +
					"parent blue does not have 10.0.0.2, 10.0.0.4, 10.0.0.6, 10.0.0.8, 10.0.0.100, and 1 more ranges",
			}, "10.0.0.10-10.0.0.99",
		},
	} {
		t.Run(name, func(t *testing.T) {
			problems, left := map[string]string{}, ""
			for _, p := range ipam.Arrange(tc.pools) {
				if !p.Valid() {
					problems[p.Name] = p.Problem
				}
				if p.BadParent != (p.Parent != "" && p.Problem != "" && p.Problem != "bad route") {
					t.Errorf("pool %s: BadParent is %v", p.Name, p.BadParent)
				}
				if p.Name == "blue" {
					left = ipaddr.FormatSet(p.Usable())
				}
			}
			if tc.problems == nil {
				tc.problems = map[string]string{}
			}
			if diff := cmp.Diff(tc.problems, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if left != tc.left {
				t.Errorf("left to the parent: %s, want %s", left, tc.left)
			}
		})
	}
}

// What a child takes from its parent.
func TestChildInherits(t *testing.T) {
	blue := part(t, "blue", "10.0.0.10-10.0.0.99", hosts(host1), hostSubnets("192.168.1.0/24"), namespaces("shop"))
	child := func(options ...option) ipam.Pool {
		options = append([]option{childOf("blue"), carved(t, "10.0.0.20-10.0.0.29")}, options...)
		all := ipam.Arrange([]ipam.Pool{part(t, "eng", "10.0.0.20-10.0.0.29", options...), blue})
		return all[0]
	}
	drawing := func(p ipam.Pool) (out []string) {
		for _, h := range []string{host1, host2, "192.168.1.5"} {
			if p.Draws(ip(h)) {
				out = append(out, h)
			}
		}
		return out
	}
	for name, tc := range map[string]struct {
		pool       ipam.Pool
		hosts      []string
		namespaces []string
	}{
		"hosts and namespaces": {child(noHosts), []string{host1, "192.168.1.5"}, []string{"shop"}},
		"namespaces":           {child(hosts(host2)), []string{host2}, []string{"shop"}},
		"hosts":                {child(noHosts, namespaces("bank")), []string{host1, "192.168.1.5"}, []string{"bank"}},
		"nothing": {child(noHosts, hostSubnets("192.168.0.2/32"), namespaces("bank")), []string{host2},
			[]string{"bank"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.hosts, drawing(tc.pool)); diff != "" {
				t.Errorf("hosts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.namespaces, slices.Sorted(maps.Keys(tc.pool.Namespaces))); diff != "" {
				t.Errorf("namespaces (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("network", func(t *testing.T) {
		prod := blue
		prod.Network = "prod"
		got := map[string]string{}
		for _, p := range ipam.Arrange([]ipam.Pool{
			prod, part(t, "eng", "10.0.0.20-10.0.0.29", childOf("blue")),
			part(t, "ops", "10.0.0.30-10.0.0.39", childOf("blue"), network("prod")),
		}) {
			got[p.Name] = p.Network
		}
		if diff := cmp.Diff(map[string]string{"blue": "prod", "eng": "prod", "ops": "prod"}, got); diff != "" {
			t.Errorf("networks (-want +got):\n%s", diff)
		}
	})
	t.Run("gateway", func(t *testing.T) {
		p := child(func(p *ipam.Pool) { p.Plan.Gateway = ip("10.0.0.254") })
		want := "gateway 10.0.0.254 is not used: parent blue has 10.0.0.1"
		if p.Params().Gateway != ip("10.0.0.1") || !slices.Equal(p.Plan.Notes, []string{want}) {
			t.Errorf("gateway %s, notes %q", p.Params().Gateway, p.Plan.Notes)
		}
	})
}

// A group hands out what was handed over to it, its parent nothing of what the group is to have.
func TestPickBesideChildren(t *testing.T) {
	blue := func(options ...option) ipam.Pool { return part(t, "blue", "10.0.0.8-10.0.0.9", options...) }
	eng := func(options ...option) ipam.Pool {
		return part(t, "eng", "10.0.0.9", slices.Concat([]option{childOf("blue"), noHosts}, options)...)
	}
	done := carved(t, "10.0.0.9")
	inBank := inNamespace("bank")
	for name, tc := range map[string]pickCase{
		"the parent stops at once": {
			pools: []ipam.Pool{blue(), eng(namespaces("bank"))}, leases: []lease.Lease{leased("10.0.0.8", "blue", 0)},
			want: want(),
			text: "PoolExhausted: no available IP for pod shop/a: pool blue (10.0.0.0/24) has 0 of 1 addresses free, " +
				"1 active, 0 reserved; hint: see who holds them: bcsnetctl ip list --pool blue; add addresses: " +
				"bcsnetctl pool add-ip blue RANGE",
		},
		"the group waits": {
			pools: []ipam.Pool{blue(), eng(namespaces("bank"))}, want: want(inBank),
			text: "PoolCordoned: no available IP for pod shop/a: pool eng is still being carved out of pool blue; " +
				"namespace bank draws only from its own pools; hint: ask again; see what it waits for: bcsnetctl pool " +
				"describe eng",
		},
		"the group has it": {
			pools: []ipam.Pool{blue(), eng(namespaces("bank"), done)}, want: want(inBank), picks: []string{"eng 10.0.0.9"},
		},
		"its namespace gets nothing else": {
			pools: []ipam.Pool{blue(), eng(namespaces("bank"), done)}, leases: []lease.Lease{leased("10.0.0.9", "blue", 0)},
			want: want(inBank),
			text: "PoolExhausted: no available IP for pod shop/a: pool eng (10.0.0.0/24) has 0 of 1 addresses " +
				"free, 0 active, 0 reserved, 1 otherwise in use; namespace bank draws only from its own pools; hint: see " +
				"who holds them: bcsnetctl ip list --pool eng; add addresses: bcsnetctl pool add-ip eng RANGE",
		},
		"an address of it by name, too early": {
			pools: []ipam.Pool{blue(), eng(namespaces("bank"))}, want: want(inBank, asking("10.0.0.9")),
			text: "PoolCordoned: address 10.0.0.9 is in pool eng, which allocates nothing: it is still being carved " +
				"out of pool blue; hint: ask again; see what it waits for: bcsnetctl pool describe eng",
		},
		"both serve who has no pool of its own": {
			pools: []ipam.Pool{blue(), eng(done, priority(1))}, want: want(), picks: []string{"eng 10.0.0.9"},
		},
		"the network of its parent is its own": {
			pools: []ipam.Pool{blue(network("prod")), eng(namespaces("bank"), done)}, want: want(inBank, ofNetwork("prod")),
			picks: []string{"eng 10.0.0.9"},
		},
		"a cordoned parent cordons it": {
			pools: []ipam.Pool{blue(cordoned), eng(namespaces("bank"), done)}, want: want(inBank),
			text: "PoolCordoned: no available IP for pod shop/a: pool eng is a child of pool blue, which is " +
				"cordoned; namespace bank draws only from its own pools; hint: see: bcsnetctl pool describe eng",
		},
		"a parent that is being deleted stops it": {
			pools: []ipam.Pool{blue(terminating), eng(namespaces("bank"), done)}, want: want(inBank),
			text: "PoolCordoned: no available IP for pod shop/a: pool eng is a child of pool blue, which is being " +
				"deleted; namespace bank draws only from its own pools; hint: see: bcsnetctl pool describe eng",
		},
		"no parent": {
			pools: []ipam.Pool{eng(namespaces("bank"), done, hosts(host1))}, want: want(inBank),
			text: "PoolCordoned: no available IP for pod shop/a: pool eng is not usable: parent blue does not exist; " +
				"namespace bank draws only from its own pools; hint: see: bcsnetctl pool describe eng",
		},
		"a group that grows hands out what it has": {
			pools: []ipam.Pool{
				part(t, "blue", "10.0.0.7-10.0.0.9"), part(t, "eng", "10.0.0.8-10.0.0.9", childOf("blue"),
					namespaces("bank"), done),
			},
			want: want(inBank), picks: []string{"eng 10.0.0.9"},
		},
		"not what it has grown by": {
			pools: []ipam.Pool{
				part(t, "blue", "10.0.0.7-10.0.0.9"), part(t, "eng", "10.0.0.8-10.0.0.9", childOf("blue"),
					namespaces("bank"), done),
			},
			want: want(inBank, asking("10.0.0.8")),
			text: "AddressInUse: address 10.0.0.8 is being carved out of pool blue for pool eng, which does not allocate it yet" +
				"; hint: ask for another address; see what it waits for: bcsnetctl pool describe eng",
		},
		"gone, it has given its part back": {
			pools: []ipam.Pool{blue(), eng(namespaces("bank"), done)}, before: func(x *Index) { x.Pools.RemovePool("eng") },
			want: want(asking("10.0.0.9")), picks: []string{"blue 10.0.0.9"},
		},
	} {
		t.Run(name, tc.check)
	}
}

// A group has its range as soon as the index knows it, and until it is gone.
func TestGroupKeepsItsRange(t *testing.T) {
	x := indexOf(part(t, "blue", "10.0.0.10-10.0.0.19"))
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"it comes", func() { x.Pools.SetPool(part(t, "eng", "10.0.0.15", childOf("blue"))) }, "eng"},
		{"it is being deleted", func() { x.Pools.SetPool(part(t, "eng", "10.0.0.15", childOf("blue"), terminating)) },
			"eng"},
		{"it is gone", func() { x.Pools.RemovePool("eng") }, "blue"},
	} {
		step.do()
		if got, _ := x.Pools.PoolOf(ip("10.0.0.15")); got != step.want {
			t.Errorf("%s: 10.0.0.15 is served by %q, want %q", step.what, got, step.want)
		}
	}
}

// What is counted of leases that were the parent's when their addresses became the group's.
func TestCountsBesideChildren(t *testing.T) {
	x := indexOf(part(t, "blue", "10.0.0.10-10.0.0.19"))
	x.take("blue", "10.0.0.10", "10.0.0.15", "10.0.0.16")
	eng := part(t, "eng", "10.0.0.15-10.0.0.18", childOf("blue"))
	counts := func() string {
		var out string
		for _, name := range []string{"blue", "eng"} {
			c := x.Pools.Counts(name, now)
			out += fmt.Sprintf("%s %d served %d free %d of %d active, %d draining; ", name, c.Served, c.Free, c.Active,
				c.Capacity, draining(x, name))
		}
		return out
	}
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"a part of it", func() { x.Pools.SetPool(eng) },
			"blue 6 served 5 free 3 of 8 active, 2 draining; eng 4 served 2 free 0 of 4 active, 0 draining; "},
		{"is handed over", func() { eng.Carved = eng.Plan.Usable; x.Pools.SetPool(eng) },
			"blue 6 served 5 free 3 of 8 active, 2 draining; eng 4 served 2 free 0 of 4 active, 0 draining; "},
		{"one is released", func() {
			l := available("10.0.0.15", "blue", x.Feed.Seen()+1)
			l.Updated = at(1)
			x.Feed.Watched(l)
		}, "blue 6 served 5 free 2 of 7 active, 1 draining; eng 4 served 3 free 0 of 4 active, 0 draining; "},
		{"and the group's", func() { x.take("eng", "10.0.0.15") },
			"blue 6 served 5 free 2 of 7 active, 1 draining; eng 4 served 2 free 1 of 4 active, 0 draining; "},
		{"the group goes", func() { x.Pools.RemovePool("eng") },
			"blue 10 served 7 free 2 of 10 active, 0 draining; eng 0 served 0 free 1 of 1 active, 0 draining; "},
		{"and comes again", func() { x.Pools.SetPool(eng) },
			"blue 6 served 5 free 2 of 7 active, 1 draining; eng 4 served 2 free 1 of 4 active, 0 draining; "},
		{"the parent goes", func() { x.Pools.RemovePool("blue") },
			"blue 0 served 0 free 2 of 2 active, 0 draining; eng 0 served 0 free 1 of 1 active, 0 draining; "},
		{"and comes again", func() { x.Pools.SetPool(part(t, "blue", "10.0.0.10-10.0.0.19")) },
			"blue 6 served 5 free 2 of 7 active, 1 draining; eng 4 served 2 free 1 of 4 active, 0 draining; "},
		{"and shrinks", func() { x.Pools.SetPool(part(t, "blue", "10.0.0.10-10.0.0.17")) },
			"blue 8 served 5 free 2 of 8 active, 0 draining; eng 0 served 0 free 1 of 1 active, 0 draining; "},
	} {
		step.do()
		if got := counts(); got != step.want {
			t.Errorf("%s:\n got %s\nwant %s", step.what, got, step.want)
		}
		checkFreeSets(t, x)
	}
	for _, name := range []string{"blue", "eng"} {
		if o := x.Pools.Overlaps(name); len(o) > 0 {
			t.Errorf("pool %s overlaps %v", name, o)
		}
	}
}

func draining(x *Index, pool string) (n int) {
	for _, of := range x.Pools.Draining(pool) {
		n += of
	}
	return n
}

// Which leases a group waits for.
func TestObstacles(t *testing.T) {
	kept := reserved("10.0.0.21", "blue", 0)
	kept.Claim = "shop/web"
	released := available("10.0.0.20", "blue", 0)
	released.Updated = now
	lost, coolsAnew := leased("10.0.0.22", "blue", 0), leased("10.0.0.23", "blue", 0)
	for name, tc := range map[string]struct {
		lease lease.Lease
		want  string
	}{
		"in use":           {leased("10.0.0.20", "blue", 0), "10.0.0.20"},
		"kept for a claim": {kept, "10.0.0.21"},
		"cooling":          {released, "10.0.0.20 at 60"},
		"free":             {available("10.0.0.20", "blue", 0), ""},
		"set aside":        {reserved("10.0.0.20", "blue", 0), ""},
		"the group's own":  {leased("10.0.0.20", "eng", 0), ""},
		"of a third pool":  {leased("10.0.0.20", "gone", 0), "10.0.0.20"},
		"outside":          {leased("10.0.0.10", "blue", 0), ""},
		"its object gone":  {lost, "10.0.0.22"},
		"cooling as well":  {coolsAnew, "10.0.0.23"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, many := range []int{0, 40} { // by the addresses, and by the leases
				cooldown := func(p *ipam.Pool) { p.Cooldown = time.Minute }
				x := indexOf(part(t, "blue", "10.0.0.10-10.0.0.99", cooldown),
					part(t, "eng", "10.0.0.20-10.0.0.29", childOf("blue")))
				for i := range many {
					x.take("blue", fmt.Sprintf("10.0.0.%d", 50+i))
				}
				tc.lease.Version = x.Feed.Seen() + 1
				x.Feed.Watched(tc.lease)
				switch tc.lease.Addr {
				case lost.Addr:
					x.Feed.WatchedDelete(lost.Addr, x.Feed.Seen()+1)
				case coolsAnew.Addr: // made anew by somebody who knew of no holder
					x.Feed.WatchedDelete(coolsAnew.Addr, x.Feed.Seen()+1)
					anew := available("10.0.0.23", "blue", x.Feed.Seen()+1)
					anew.Updated = at(-1)
					x.Feed.Watched(anew)
				}
				got := ""
				p, _ := x.Pools.Get("eng")
				in, next := x.Leases.Obstacles("eng", p.Withheld, now)
				for _, o := range in {
					got += o.Lease.Addr.String()
				}
				if !next.IsZero() {
					got += fmt.Sprintf(" at %d", int(next.Sub(now).Seconds()))
				}
				if got != tc.want {
					t.Errorf("in the way: %q, want %q", got, tc.want)
				}
			}
		})
	}
}

// Pools come, change and go in any order: what the index has then is what Arrange makes of those that are there, each
// address is served by whoever has it, and nothing overlaps within a family.
func TestFamiliesInAnyOrder(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(rt *rapid.T) {
		x, there := New(), map[string]ipam.Pool{}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			name := rapid.SampledFrom(names).Draw(rt, "pool")
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0:
				delete(there, name)
				x.Pools.RemovePool(name)
			case 1:
				addr := fmt.Sprintf("10.0.0.%d", rapid.IntRange(10, 30).Draw(rt, "address"))
				x.take(name, addr)
			default:
				from := rapid.IntRange(10, 25).Draw(rt, "from")
				p := part(t, name, fmt.Sprintf("10.0.0.%d-10.0.0.%d", from, from+rapid.IntRange(0, 12).Draw(rt,
					"size")),
					created(rapid.IntRange(0, 2).Draw(rt, "age")))
				p.Parent = rapid.SampledFrom([]string{"", "", "a", "a", "b"}).Draw(rt, "parent")
				p.Network = rapid.SampledFrom([]string{"", "", "prod", "lab"}).Draw(rt, "network")
				p.Cordoned = rapid.IntRange(0, 5).Draw(rt, "cordoned") == 0
				p.Terminating = rapid.IntRange(0, 5).Draw(rt, "terminating") == 0
				if rapid.IntRange(0, 9).Draw(rt, "bad") == 0 {
					p.Problem = "bad"
				}
				if rapid.Bool().Draw(rt, "bound") {
					p.Namespaces = map[string]struct{}{"shop": {}}
				}
				if rapid.Bool().Draw(rt, "hosts") {
					p.Hosts = nil
				}
				if p.Parent != "" && rapid.Bool().Draw(rt, "carved") {
					p.Carved = mustSet(t, "10.0.0.10-10.0.0.20")
				}
				there[name] = p
				x.Pools.SetPool(p)
			}
			checkFamilies(rt, x, there)
		}
	})
}

func checkFamilies(t *rapid.T, x *Index, there map[string]ipam.Pool) {
	fresh := New()
	for _, p := range ipam.Arrange(slices.Collect(maps.Values(there))) {
		got, ok := x.Pools.Get(p.Name)
		if !ok || got.Problem != p.Problem || got.Serves() != p.Serves() || !got.Usable().Equal(p.Usable()) ||
			!maps.Equal(got.Hosts, p.Hosts) || !maps.Equal(got.Namespaces, p.Namespaces) ||
			got.ByParent != p.ByParent ||
			got.Network != p.Network {
			t.Fatalf("pool %s:\n got %+v\nwant %+v", p.Name, got, p)
		}
		if found := slices.Contains(x.Pools.PoolsOf(ip(host1)), p.Name); found != p.Draws(ip(host1)) {
			t.Fatalf("pool %s is found by its host: %v", p.Name, found)
		}
		for _, name := range []string{"prod", "lab"} {
			if found := slices.ContainsFunc(x.core.state.Pools.Networks[name],
				func(s *memory.PoolState) bool { return s.Name == p.Name }); found !=
				(p.Network == name) {
				t.Fatalf("pool %s is found by network %s: %v", p.Name, name, found)
			}
		}
		fresh.Pools.SetPool(there[p.Name])
	}
	all := x.Leases.Find(func(lease.Lease) bool { return true })
	slices.SortFunc(all, func(a, b lease.Lease) int { return int(a.Version) - int(b.Version) })
	for _, l := range all {
		fresh.Feed.Watched(l)
	}
	for i := 10; i < 40; i++ {
		a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		got, _ := x.Pools.PoolOf(a)
		if want, _ := fresh.Pools.PoolOf(a); got != want && !losesInCircle(x, a) {
			t.Fatalf("%s is served by %q, and by %q where nothing has changed", a, got, want)
		}
	}
	for name, p := range there {
		for _, o := range x.Pools.Overlaps(name) {
			if q := there[o.Other]; q.Parent == name || p.Parent == o.Other || p.Parent != "" && p.Parent == q.Parent {
				t.Fatalf("pools %s and %s overlap", name, o.Other)
			}
		}
	}
	checkFreeSets(t, x)
}
