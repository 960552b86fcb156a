package index

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
)

// TestBlocksBeforeTheirParent: the first list of pools comes in any order. Blocks that come before their parent are
// blocks of it once it is there, and none of them is looked at for each of the others.
func TestBlocksBeforeTheirParent(t *testing.T) {
	const blocks = 4096
	plan := func(available string) ipam.Plan {
		p, err := ipam.NewPlan(ipam.PlanSpec{Net: "10.0.0.0", Mask: 8, Gateway: "10.0.0.1", Available: []string{available}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	x := New()
	last := ""
	for i := range blocks {
		cidr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(64 + i>>11), byte(i >> 3), byte(i << 5)}), 27)
		p := ipam.Pool{Name: block.Name("p", cidr), Parent: "p", Plan: plan(cidr.String())}
		p.Plan.CIDR = cidr
		p.Namespaces = map[string]struct{}{fmt.Sprintf("ns-%d", i): {}}
		x.Pools.SetPool(p)
		last = p.Name
		if n := len(x.Pools.Relatives(p.Name)); n > 1 {
			t.Fatalf("%d pools depend on a block whose parent is not there", n)
		}
	}
	if p, _ := x.Pools.Get(last); p.Valid() || p.Block {
		t.Errorf("a block without its parent: %+v", p)
	}
	x.Pools.SetPool(ipam.Pool{Name: "p", Plan: plan("10.64.0.0-10.65.255.255"), BlockSize: 27, AutoAssign: true})
	if c := x.Pools.Blocks("p"); c.Owned != blocks {
		t.Errorf("%+v", c)
	}
	if p, _ := x.Pools.Get(last); !p.Valid() || !p.Block {
		t.Errorf("a block with its parent: %s", p.Problem)
	}
}
