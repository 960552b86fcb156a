package index

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// split cuts a pool into blocks that namespaces get by themselves.
func splitInto(length int) option {
	return func(p *ipam.Pool) { p.BlockSize, p.AutoAssign = length, true }
}

func byBindAlone(p *ipam.Pool) { p.AutoAssign = false }

// aBlock is a block of a pool as a replica makes it.
func aBlock(t testing.TB, parent ipam.Pool, cidr, namespace string, options ...option) ipam.Pool {
	t.Helper()
	prefix := netip.MustParsePrefix(cidr)
	p := pool(t, block.Name(parent.Name, prefix), parent.Plan.Subnet.String(), []string{cidr}, append(
		[]option{hosts(), namespaces(namespace)}, options...)...)
	p.Parent = parent.Name
	return p
}

// firstBlock returns the block at which a namespace begins in a pool that is split.
func firstBlock(t testing.TB, parent ipam.Pool, namespace string) netip.Prefix {
	t.Helper()
	g, err := block.NewGrid(parent.Plan.Usable, parent.Plan.Subnet, parent.BlockSize)
	if err != nil {
		t.Fatal(err)
	}
	for number := range block.NewSplit[*memory.PoolState](g).Candidates(namespace) {
		return g.Prefix(number)
	}
	t.Fatalf("pool %s has no blocks", parent.Name)
	return netip.Prefix{}
}

// TestBlocksServe: a pool that is split hands out nothing itself; its blocks serve their namespaces, with what the pool
// says of hosts and all else.
func TestBlocksServe(t *testing.T) {
	net := pool(t, "net", "10.0.0.0/24", []string{"10.0.0.0/24"}, splitInto(30), byBindAlone)
	mine, his := aBlock(t, net, "10.0.0.32/30", "shop"), aBlock(t, net, "10.0.0.36/30", "bank")
	const none = "NoFreeBlock: no available IP for pod shop/a: pool net (10.0.0.0/24) assigns no block automatically: of its 64 " +
		"blocks (/30), 1 are owned by namespaces; hint: give it a block: bcsnetctl pool bind net --namespace shop"
	for name, tc := range map[string]pickCase{
		"a block of the namespace": {
			pools: []ipam.Pool{net, mine, his}, want: want(), picks: []string{"net-10-0-0-32-30 10.0.0.32"},
		},
		"in any order": {
			pools: []ipam.Pool{his, mine, net}, want: want(), picks: []string{"net-10-0-0-32-30 10.0.0.32"},
		},
		"asked for by the pool": {
			pools: []ipam.Pool{net, mine}, want: want(func(w *ipam.PickRequest) { w.Pools = []string{"net"} }),
			picks: []string{"net-10-0-0-32-30 10.0.0.32"},
		},
		"asked for by the block": {
			pools: []ipam.Pool{net, mine}, want: want(func(w *ipam.PickRequest) { w.Pools = []string{"net-10-0-0-32-30"} }),
			picks: []string{"net-10-0-0-32-30 10.0.0.32"},
		},
		"an address of the block": {
			pools: []ipam.Pool{net, mine}, want: want(asking("10.0.0.33")), picks: []string{"net-10-0-0-32-30 10.0.0.33"},
		},
		"an address of another's block": {
			pools: []ipam.Pool{net, mine, his}, want: want(asking("10.0.0.37")),
			text: "NamespaceNotServed: address 10.0.0.37 is in pool net-10-0-0-36-30, which does not serve namespace shop; " +
				"hint: see: bcsnetctl pool describe net-10-0-0-36-30",
		},
		"an address of no block": {
			pools: []ipam.Pool{net, mine}, want: want(asking("10.0.0.77")),
			text: "NamespaceNotServed: address 10.0.0.77 of pool net is in no block of namespace shop, and the block " +
				"10.0.0.76/30 cannot be given to it; hint: ask for an address of its own blocks; see: bcsnetctl pool tree",
		},
		"the block that was named is full": {
			pools: []ipam.Pool{net, mine}, want: want(func(w *ipam.PickRequest) { w.Pools = []string{mine.Name} }),
			before: func(x *Index) { x.take(mine.Name, "10.0.0.32", "10.0.0.33", "10.0.0.34", "10.0.0.35") },
			text: "PoolExhausted: no available IP for pod shop/a: pool net-10-0-0-32-30 (10.0.0.0/24) has 0 of 4 addresses " +
				"free, 4 active, 0 reserved; hint: see who holds them: bcsnetctl ip list --pool net-10-0-0-32-30; " +
				"add addresses: bcsnetctl pool add-ip net RANGE",
		},
		"the block that was named, on another host": {
			pools: []ipam.Pool{net, mine}, want: want(onHost(host2), func(w *ipam.PickRequest) { w.Pools = []string{mine.Name} }),
			text: "HostNotInPool: host 192.168.0.2 may not draw from pool net-10-0-0-32-30; hint: add the host with: " +
				"bcsnetctl pool add-host net 192.168.0.2",
		},
		"the parent of the block that was named is cordoned": {
			pools: []ipam.Pool{pool(t, "net", "10.0.0.0/24", []string{"10.0.0.0/24"}, splitInto(30), cordoned), mine},
			want:  want(func(w *ipam.PickRequest) { w.Pools = []string{mine.Name} }),
			text: "PoolCordoned: no available IP for pod shop/a: pool net-10-0-0-32-30 is a child of pool net, which is " +
				"cordoned; hint: see: bcsnetctl pool describe net-10-0-0-32-30",
		},
		"no block": {pools: []ipam.Pool{net, his}, want: want(), text: none},
		"another host": {
			pools: []ipam.Pool{net, mine}, want: want(onHost(host2)),
			text: "HostNotInPool: host 192.168.0.2 does not exist in pools; hint: add it with: bcsnetctl pool add-host POOL " +
				"192.168.0.2",
		},
		"the pool is cordoned": {
			pools: []ipam.Pool{pool(t, "net", "10.0.0.0/24", []string{"10.0.0.0/24"}, splitInto(30), cordoned), mine}, want: want(),
			text: "PoolCordoned: no available IP for pod shop/a: pool net is cordoned; pool net-10-0-0-32-30 is a " +
				"child of pool net, which is cordoned; " +
				"namespace shop draws only from its own pools; " +
				"hint: let it allocate addresses again: bcsnetctl pool uncordon net",
		},
		"maxPerHost counts all blocks": {
			pools: []ipam.Pool{
				pool(t, "net", "10.0.0.0/24", []string{"10.0.0.0/24"}, splitInto(30), byBindAlone, perHost(2)), mine, his,
			},
			leases: []lease.Lease{
				leased("10.0.0.36", "net-10-0-0-36-30", 1), leased("10.0.0.37", "net-10-0-0-36-30", 1),
			},
			want: want(asking("10.0.0.33")),
			text: "HostFull: no available IP for pod shop/a: host 192.168.0.1 has 2 of the 2 addresses of pool net that " +
				"one host may have; hint: wait until a pod of the host ends, or raise the bound: bcsnetctl pool set net --max-per-host N",
		},
		"a quota counts leases of before the split": {
			pools: []ipam.Pool{
				pool(t, "net", "10.0.0.0/24", []string{"10.0.0.0/24"}, splitInto(30), byBindAlone, quota("shop", 1)), mine,
			},
			leases: []lease.Lease{leased("10.0.0.90", "net", 1)},
			want:   want(asking("10.0.0.33")),
			text: "QuotaExceeded: no available IP for pod shop/a: namespace shop has 1 of the 1 addresses of pool net that " +
				"it may have; hint: release what it keeps and does not need: bcsnetctl claim list -n shop; or raise its quota: " +
				"bcsnetctl pool set net --quota shop=N",
		},
	} {
		t.Run(name, tc.check)
	}
}

// TestBlocksByThemselves: a namespace that has no block, or full ones, is given the next one, which does not exist yet.
func TestBlocksByThemselves(t *testing.T) {
	net := pool(t, "net", "10.0.0.0/24", []string{"10.0.0.0/24"}, splitInto(30))
	first := firstBlock(t, net, "shop")
	second := netip.PrefixFrom(first.Addr().Next().Next().Next().Next(), 30)
	picks := func(x *Index, w ipam.PickRequest) (out []string) {
		t.Helper()
		all, refusal := x.Pick(w, now)
		if refusal != nil {
			return []string{refused(refusal)}
		}
		for _, p := range all {
			new := ""
			if p.NewBlock {
				new = " new for " + p.Pool.Owner()
			}
			out = append(out, p.Pool.Name+new)
		}
		return out
	}
	name := func(b netip.Prefix) string { return block.Name("net", b) }

	x := indexOf(net)
	for i := range 4 {
		if diff := cmp.Diff([]string{name(first) + " new for shop"}, picks(x, want())); diff != "" {
			t.Fatalf("request %d:\n%s", i, diff)
		}
	}
	if diff := cmp.Diff([]string{name(second) + " new for shop"}, picks(x, want())); diff != "" {
		t.Errorf("the fifth request:\n%s", diff)
	}
	x.Pools.SetPool(aBlock(t, net, second.String(), "bank"))
	if got := picks(x, want()); got[0] == name(second) {
		t.Errorf("a block of another namespace is given away: %v", got)
	}
	x.Pools.SetPool(aBlock(t, net, first.String(), "shop"))
	x.Forget(first.Addr())
	if diff := cmp.Diff([]string{name(first)}, picks(x, want())); diff != "" {
		t.Errorf("with a block that exists:\n%s", diff)
	}
	c := x.Pools.Blocks("net")
	if c.All != 64 || c.Owned != 2 || c.Held != 1 || c.Free != 61 || c.Void != 0 {
		t.Errorf("counts %+v", c)
	}
}

// TestNoFreeBlock: with counts, and never the default chain.
func TestNoFreeBlock(t *testing.T) {
	net := pool(t, "net", "10.0.0.0/28", []string{"10.0.0.4-10.0.0.14"}, splitInto(30))
	other := pool(t, "other", "10.0.1.0/24", []string{"10.0.1.9"}, priority(9))
	x := indexOf(net, other, aBlock(t, net, "10.0.0.4/30", "bank"), aBlock(t, net, "10.0.0.8/30", "shop"))
	x.take("net", "10.0.0.12")
	x.Feed.Watched(inSpace("bank", leased("10.0.0.13", "net", x.Feed.Seen()+1)))
	x.take("net-10-0-0-8-30", "10.0.0.8", "10.0.0.9", "10.0.0.10", "10.0.0.11")
	_, refusal := x.Pick(want(), now)
	if got, want := refused(refusal), "NoFreeBlock: no available IP for pod shop/a: pool net (10.0.0.0/28) has no free "+
		"block: of its 3 blocks (/30), 2 are owned by namespaces, 1 of them by shop, 1 hold addresses of others; pool "+
		"net-10-0-0-8-30 (10.0.0.0/28) has 0 of 4 addresses free, 4 active, 0 reserved; hint: add addresses: bcsnetctl "+
		"pool add-ip net RANGE; see who has the blocks: bcsnetctl pool tree"; got != want {
		t.Errorf("refused:\n got %s\nwant %s", got, want)
	}
	// Once the other namespace is gone from it, the block may be given to the one that is there already.
	freed := available("10.0.0.13", "net", x.Feed.Seen()+1)
	freed.Updated = at(1)
	x.Feed.Watched(freed)
	picks, refusal := x.Pick(want(), now)
	if diff := cmp.Diff([]string{"net-10-0-0-12-30 10.0.0.13"}, picked(picks)); diff != "" {
		t.Errorf("%v:\n%s", refusal, diff)
	}
}

// TestNoBlock: pools that name a parent and are no blocks of it serve nothing, and say why.
func TestNoBlock(t *testing.T) {
	net := pool(t, "net", "10.0.0.0/24", []string{"10.0.0.0/25"}, splitInto(27))
	flat := pool(t, "flat", "10.0.1.0/24", []string{"10.0.1.0/25"})
	good := aBlock(t, net, "10.0.0.32/27", "shop")
	with := func(change func(*ipam.Pool)) ipam.Pool {
		p := good
		change(&p)
		return p
	}
	for name, tc := range map[string]struct {
		pool    ipam.Pool
		problem string
	}{
		"a block":       {good, ""},
		"another name":  {with(func(p *ipam.Pool) { p.Name = "net-10-0-0-64-27" }), "it is not a block of pool net: the block 10.0.0.32/27 is called net-10-0-0-32-27"},
		"another size":  {aBlock(t, net, "10.0.0.32/28", "shop"), "it is not a block of pool net: availableIPs of a block are one CIDR of length 27, its blockSize"},
		"outside":       {aBlock(t, net, "10.0.0.128/27", "shop"), "it is not a block of pool net: the pool has no address in 10.0.0.128/27"},
		"no namespace":  {with(func(p *ipam.Pool) { p.Namespaces = nil }), "it is not a block of pool net: a block has one namespace, it has 0"},
		"two":           {with(namespaces("shop", "bank")), "it is not a block of pool net: a block has one namespace, it has 2"},
		"no parent":     {with(func(p *ipam.Pool) { p.Parent = "gone" }), "parent gone does not exist"},
		"not split":     {with(func(p *ipam.Pool) { p.Parent = "flat" }), "bad ip-pool 10.0.0.32-10.0.0.63, EPG ip-pool must be a subset of network 10.0.1.0/24: its net and mask, 10.0.0.0/24, differ from parent flat"},
		"of itself":     {with(func(p *ipam.Pool) { p.Parent = p.Name }), "a pool cannot be its own parent"},
		"its own fault": {with(problem("hosts[0]: bad")), "hosts[0]: bad"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, order := range [][]ipam.Pool{{net, flat, tc.pool}, {tc.pool, flat, net}} {
				x := indexOf(order...)
				p, _ := x.Pools.Get(tc.pool.Name)
				if p.Problem != tc.problem && (name != "of itself" || p.Problem == "") {
					t.Errorf("problem %q, want %q", p.Problem, tc.problem)
				}
				if p.Block != (tc.problem == "") {
					t.Errorf("block: %t", p.Block)
				}
				if c := x.Pools.Counts(p.Name, now); (c.Served > 0) != p.Block {
					t.Errorf("serves %d", c.Served)
				}
				if c := x.Pools.Counts("net", now); c.Capacity != 126 {
					t.Errorf("the parent has %d addresses", c.Capacity)
				}
			}
		})
	}
}

// TestParentChanges: blocks read their parent again, are what they were when it comes back, and have none without it.
func TestParentChanges(t *testing.T) {
	net := func(available string, options ...option) ipam.Pool {
		return pool(t, "net", "10.0.0.0/24", []string{available}, append([]option{splitInto(27)}, options...)...)
	}
	b := aBlock(t, net("10.0.0.0/24"), "10.0.0.32/27", "shop")
	x := indexOf(net("10.0.0.0/24"), b)
	x.take(b.Name, "10.0.0.40", "10.0.0.60")
	check := func(what string, usable string, serves bool, counts ipam.PoolCounts) {
		t.Helper()
		p, _ := x.Pools.Get(b.Name)
		if got := fmt.Sprint(p.Plan.Usable.Ranges()); got != usable || p.Serves() != serves {
			t.Errorf("%s: usable %s, serves %t (%s)", what, got, p.Serves(), p.Problem)
		}
		got := x.Pools.Counts("net", now)
		if got.Active != counts.Active || got.Capacity != counts.Capacity || got.Free != counts.Free {
			t.Errorf("%s: counts %+v, want %+v", what, got, counts)
		}
	}
	check("at first", "[10.0.0.32-10.0.0.63]", true, ipam.PoolCounts{Capacity: 253, Free: 251, Active: 2})
	x.Pools.SetPool(net("10.0.0.0/24", cordoned))
	check("cordoned", "[10.0.0.32-10.0.0.63]", false, ipam.PoolCounts{Capacity: 253, Free: 251, Active: 2})
	x.Pools.SetPool(net("10.0.0.0/24", perHost(7), hosts(host2)))
	if p, _ := x.Pools.Get(b.Name); p.MaxPerHost != 7 || !p.Draws(ip(host2)) || p.Draws(ip(host1)) {
		t.Errorf("the block does not read its parent: %+v", p)
	}
	x.Pools.SetPool(net("10.0.0.0-10.0.0.50"))
	check("shrunk", "[10.0.0.32-10.0.0.50]", true, ipam.PoolCounts{Capacity: 50, Free: 48, Active: 2})
	if d := x.Pools.Draining("net"); d[ip(host1)] != 1 {
		t.Errorf("draining %v", d)
	}
	x.Pools.SetPool(net("10.0.0.128/25"))
	if p, _ := x.Pools.Get(b.Name); p.Block || p.Serves() {
		t.Errorf("a block outside its parent: %+v", p)
	}
	x.Pools.RemovePool("net")
	if p, _ := x.Pools.Get(b.Name); p.Block || p.Problem != "parent net does not exist" {
		t.Errorf("a block without its parent: %+v", p)
	}
	x.Pools.SetPool(net("10.0.0.0/24"))
	check("back", "[10.0.0.32-10.0.0.63]", true, ipam.PoolCounts{Capacity: 253, Free: 251, Active: 2})
	x.Pools.RemovePool(b.Name)
	if owner, _ := x.Pools.PoolOf(ip("10.0.0.40")); owner != "net" {
		t.Errorf("without its block an address is served by %q", owner)
	}
	c := x.Pools.Counts("net", now)
	if diff := cmp.Diff(ipam.PoolCounts{Served: 253, Free: 251, Capacity: 253}, c, cmpopts.IgnoreFields(ipam.PoolCounts{}, "NextFree")); diff != "" {
		t.Errorf("counts:\n%s", diff)
	}
	if got := slices.Collect(x.core.state.Pools.ByName["net"].Split.Candidates("shop")); len(got) == 0 || got[0] != 1 {
		t.Errorf("the block in which the namespace has addresses is not the first that it may be given: %v", got)
	}
	if slices.Contains(slices.Collect(x.core.state.Pools.ByName["net"].Split.Candidates("bank")), 1) {
		t.Error("a block with addresses of another namespace may be given away")
	}
}

// TestParentGrows: what counts for namespaces and hosts in a pool that is split counts once, however often the pool is
// given addresses, which numbers its blocks anew.
func TestParentGrows(t *testing.T) {
	net := func(available string) ipam.Pool {
		return pool(t, "net", "10.0.0.0/24", []string{available}, splitInto(30), perHost(2), perNamespace(2))
	}
	b := aBlock(t, net("10.0.0.32/28"), "10.0.0.32/30", "shop")
	x := indexOf(net("10.0.0.32/28"), b)
	x.take(b.Name, "10.0.0.32")
	for _, available := range []string{"10.0.0.32/27", "10.0.0.0/25", "10.0.0.0/24"} {
		x.Pools.SetPool(net(available))
		checkPlaces(t, x)
		if got := x.core.state.Usage.Charged; len(got) != 1 || got["net"]["shop"] != 1 {
			t.Errorf("of %s count %v", available, got)
		}
	}
	if picks, refusal := x.Pick(want(), now); refusal != nil || len(picks) != 1 || picks[0].Pool.Name != b.Name {
		t.Errorf("the second of two addresses: %v %v", picked(picks), refusal)
	}
}

// TestSplitLate: a pool that is split while it serves gives no block before its addresses are handed over, and a
// namespace that could be given one does not fall through to the default chain meanwhile. What it has it keeps.
func TestSplitLate(t *testing.T) {
	net := pool(t, "net", "10.0.0.0/24", []string{"10.0.0.4-10.0.0.11"}, splitInto(30))
	net.Generation = 2
	net.Carving = net.SplitLate()
	other := pool(t, "other", "10.0.1.0/24", []string{"10.0.1.9"}, priority(9))
	const wait = "PoolCordoned: no available IP for pod shop/a: pool net is still being split into blocks; namespace shop draws only from its own pools; hint: ask again; " +
		"see what it waits for: bcsnetctl pool describe net"
	held := leased("10.0.0.5", "net", 1)
	for name, tc := range map[string]pickCase{
		"no block yet":      {pools: []ipam.Pool{net, other}, want: want(), text: wait},
		"by the address":    {pools: []ipam.Pool{net}, want: want(asking("10.0.0.4")), text: "PoolCordoned: address 10.0.0.4 is in pool net, which allocates nothing: it is still being split into blocks; hint: ask again; see what it waits for: bcsnetctl pool describe net"},
		"nor one that is":   {pools: []ipam.Pool{net, aBlock(t, net, "10.0.0.8/30", "shop")}, want: want(), text: "PoolCordoned: no available IP for pod shop/a: pool net is still being split into blocks; pool net-10-0-0-8-30 is still being split into blocks; namespace shop draws only from its own pools; hint: ask again; see what it waits for: bcsnetctl pool describe net"},
		"whoever has some":  {pools: []ipam.Pool{net}, leases: []lease.Lease{held}, want: want(having(held))},
		"once it is handed": {pools: []ipam.Pool{handed(t, net)}, leases: []lease.Lease{inSpace("bank", held)}, want: want(), picks: []string{"net-10-0-0-8-30 10.0.0.8"}},
	} {
		t.Run(name, tc.check)
	}
	if x := indexOf(net); true {
		if _, refusal := x.Pools.NextBlock("net", "shop", netip.Prefix{}); refusal == nil || refusal.Reason != ipam.ReasonPoolCordoned {
			t.Errorf("by hand: %v", refusal)
		}
		x.Pools.SetPool(handed(t, net))
		if _, refusal := x.Pools.NextBlock("net", "shop", netip.Prefix{}); refusal != nil {
			t.Errorf("by hand, once it is handed over: %v", refusal)
		}
	}
}

// handed is a pool whose addresses are handed over to its blocks.
func handed(t testing.TB, p ipam.Pool) ipam.Pool {
	t.Helper()
	p.Carved = mustSet(t, p.Plan.Subnet.String())
	p.Carving = p.SplitLate()
	return p
}

// TestSplitNoMore: a pool whose addresses became too many for its blocks is not what namespaces could have of their
// own, as for a replica that starts then.
func TestSplitNoMore(t *testing.T) {
	const many, few = "10.0.0.0/8", "10.0.0.0/24"
	net := pool(t, "net", many, []string{few}, splitInto(30))
	wide := pool(t, "wide", "11.0.0.0/8", []string{"11.0.0.0/24"}, splitInto(30))
	flat := pool(t, "flat", "12.0.0.0/24", []string{"12.0.0.7"})
	tooMany := pool(t, "net", many, []string{many}, splitInto(30))
	tooWide := pool(t, "wide", "11.0.0.0/8", []string{"11.0.0.0/8"}, splitInto(30))
	for name, pools := range map[string][]ipam.Pool{
		"at once": {flat, tooMany, tooWide}, "one after the other": {net, wide, flat, tooMany, tooWide},
	} {
		t.Run(name, pickCase{pools: pools, want: want(), picks: []string{"flat 12.0.0.7"}}.check)
	}
	for _, p := range ipam.Arrange([]ipam.Pool{wide, flat, tooMany}) { // as commands see it
		if is, _ := indexOf(p).Pools.Get(p.Name); is.Problem != p.Problem || !is.Usable().Equal(p.Usable()) {
			t.Errorf("pool %s has the problem %q for commands, and %q", p.Name, p.Problem, is.Problem)
		}
	}
	x := indexOf(net, wide, flat, tooMany)
	if own := x.Pools.Own("shop", ip(host1)); !slices.Equal(own, []string{"wide"}) {
		t.Errorf("shop could have blocks of %v", own)
	}
}
