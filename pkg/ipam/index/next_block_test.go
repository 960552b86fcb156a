package index

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// TestNextBlock: which block a namespace is given by hand, also of a pool that gives none by itself.
func TestNextBlock(t *testing.T) {
	net := pool(t, "net", "10.0.0.0/28", []string{"10.0.0.4-10.0.0.11"}, splitInto(30), byBindAlone)
	first := firstBlock(t, net, "shop")
	leaving := func(p *ipam.Pool) { p.Terminating = true }
	inBank := func(addr string) lease.Lease { return inSpace("bank", leased(addr, "net", 1)) }
	full := []ipam.Pool{net, aBlock(t, net, "10.0.0.4/30", "bank"), aBlock(t, net, "10.0.0.8/30", "shop")}
	for name, tc := range map[string]struct {
		pools  []ipam.Pool
		leases []lease.Lease
		of     string
		which  string
		want   string
	}{
		"the first":           {pools: []ipam.Pool{net}, want: block.Name("net", first) + " for shop"},
		"one that is chosen":  {pools: []ipam.Pool{net}, which: "10.0.0.8/30", want: "net-10-0-0-8-30 for shop"},
		"of a cordoned pool":  {pools: []ipam.Pool{pool(t, "net", "10.0.0.0/28", []string{"10.0.0.8"}, splitInto(30), cordoned)}, want: "net-10-0-0-8-30 for shop"},
		"where its pods are":  {pools: []ipam.Pool{net}, leases: []lease.Lease{inSpace("shop", leased("10.0.0.5", "net", 1)), inBank("10.0.0.9")}, want: "net-10-0-0-4-30 for shop"},
		"another, where some": {pools: []ipam.Pool{net}, leases: []lease.Lease{inBank("10.0.0.5")}, want: "net-10-0-0-8-30 for shop"},
		"none left": {pools: full, want: "NoFreeBlock: pool net has no block left for namespace shop: of its 2 blocks (/30), 2 are owned by namespaces, 1 of them by shop; " +
			"hint: add addresses: bcsnetctl pool add-ip net RANGE; see who has the blocks: bcsnetctl pool tree net"},
		"owned": {pools: full, which: "10.0.0.4/30", want: "NoFreeBlock: block 10.0.0.4/30 of pool net is owned by namespace bank; hint: see: bcsnetctl pool tree net"},
		"being deleted": {
			pools: []ipam.Pool{net, aBlock(t, net, "10.0.0.4/30", "shop", leaving)}, which: "10.0.0.4/30",
			want: "NoFreeBlock: block 10.0.0.4/30 of pool net, which namespace shop has, is being deleted; hint: ask again once it is gone; see: bcsnetctl pool describe net-10-0-0-4-30",
		},
		"held by others": {
			pools: []ipam.Pool{net}, which: "10.0.0.4/30", leases: []lease.Lease{inBank("10.0.0.5"), inBank("10.0.0.6"), inSpace("shop", leased("10.0.0.4", "net", 1)), inSpace("", leased("10.0.0.7", "net", 1))},
			want: "NoFreeBlock: others than namespace shop have addresses in block 10.0.0.4/30 of pool net: owners in no namespace (1), bank (2); " +
				"hint: take another block, or wait until they are given up; see: bcsnetctl ip list --pool net",
		},
		"of another size": {
			pools: []ipam.Pool{net}, which: "10.0.0.4/31",
			want: "BadRequest: 10.0.0.4/31 is not a block of pool net: blocks have the length 30, such as 10.0.0.4/30; hint: see: bcsnetctl pool tree net",
		},
		"not on a boundary": {
			pools: []ipam.Pool{net}, which: "10.0.0.5/30",
			want: "BadRequest: 10.0.0.5/30 is not a block of pool net: blocks have the length 30, such as 10.0.0.4/30; hint: see: bcsnetctl pool tree net",
		},
		"of the other family": {
			pools: []ipam.Pool{net}, which: "fd00::/30",
			want: "BadRequest: fd00::/30 is not a block of pool net: blocks have the length 30, such as 10.0.0.4/30; hint: see: bcsnetctl pool tree net",
		},
		"outside": {
			pools: []ipam.Pool{net}, which: "10.0.0.12/30",
			want: "AddressNotInPool: pool net has no address in 10.0.0.12/30 that it could allocate; hint: add them: bcsnetctl pool add-ip net 10.0.0.12-10.0.0.15",
		},
		"its name is taken": {
			pools: []ipam.Pool{net, aBlock(t, net, "10.0.0.4/30", "shop", namespaces("a", "b"))}, which: "10.0.0.4/30",
			want: "NoFreeBlock: a pool has the name net-10-0-0-4-30 of the block, and is not the block: it is not a block of pool net: a block has one namespace, it has 2; hint: see: bcsnetctl pool describe net-10-0-0-4-30",
		},
		"of a pool that is not split": {
			pools: []ipam.Pool{pool(t, "net", "10.0.0.0/28", []string{"10.0.0.4"})},
			want:  "BadRequest: pool net is not split into blocks; hint: blocks are of a pool that has blockSize; see: bcsnetctl pool describe net",
		},
		"of a pool that goes": {
			pools: []ipam.Pool{pool(t, "net", "10.0.0.0/28", []string{"10.0.0.4"}, splitInto(30), leaving)},
			want:  "PoolCordoned: pool net allocates nothing: it is being deleted; hint: see: bcsnetctl pool describe net",
		},
		"of no pool": {pools: []ipam.Pool{net}, of: "gone", want: "NotFound: there is no pool gone; hint: see: bcsnetctl pool list"},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(tc.pools...)
			for _, l := range tc.leases {
				l.Version = x.Feed.Seen() + 1
				x.Feed.Watched(l)
			}
			of, which := tc.of, netip.Prefix{}
			if of == "" {
				of = "net"
			}
			if tc.which != "" {
				which = netip.MustParsePrefix(tc.which)
			}
			b, refusal := x.Pools.NextBlock(of, "shop", which)
			got := b.Name + " for " + b.Owner()
			if refusal != nil {
				got = refused(refusal)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOwnBlocks: those that are being deleted are none of them.
func TestOwnBlocks(t *testing.T) {
	net := pool(t, "net", "10.0.0.0/28", []string{"10.0.0.0/28"}, splitInto(30))
	x := indexOf(net, aBlock(t, net, "10.0.0.4/30", "shop"), aBlock(t, net, "10.0.0.8/30", "bank"),
		aBlock(t, net, "10.0.0.12/30", "shop", func(p *ipam.Pool) { p.Terminating = true }))
	if diff := cmp.Diff([]string{"net-10-0-0-4-30"}, x.Pools.OwnBlocks("net", "shop")); diff != "" {
		t.Error(diff)
	}
	if got := x.Pools.OwnBlocks("gone", "shop"); got != nil {
		t.Errorf("of no pool: %v", got)
	}
}
