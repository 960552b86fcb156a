package doctor

import (
	"net/netip"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// TestWholePools: blocks are their parents', what only looks like one is not.
func TestWholePools(t *testing.T) {
	cidr := netip.MustParsePrefix("10.0.0.32/27")
	of := func(name, parent string, size int, namespaces ...string) Pool {
		p := ipam.Pool{Name: name, Parent: parent, BlockSize: size, Namespaces: map[string]struct{}{"shop": {}}}
		for _, ns := range namespaces {
			p.Namespaces[ns] = struct{}{}
		}
		if parent != "" {
			p.Plan.CIDR = cidr
		}
		return Pool{Pool: p}
	}
	s := Snapshot{
		Pools: []Pool{
			of("net", "", 27), of("net-10-0-0-32-27", "net", 0), of("mine", "net", 0), of("flat", "", 0),
			of("flat-10-0-0-32-27", "flat", 0), of("two", "", 27), of("two-10-0-0-32-27", "two", 0, "bank"),
		},
		Leases: []lease.Lease{
			{Params: lease.Params{Pool: "net-10-0-0-32-27"}}, {Params: lease.Params{Pool: "mine"}}, {Params: lease.Params{Pool: "net"}},
		},
	}
	whole, blocks := s.wholePools()
	if n := len(whole.Pools); n != 6 {
		t.Errorf("%d pools", n)
	}
	for i, want := range []string{"net", "mine", "net"} {
		if got := whole.Leases[i].Pool; got != want {
			t.Errorf("lease %d is of %s, want %s", i, got, want)
		}
	}
	if want := "net-10-0-0-32-27"; len(blocks) != 1 || len(blocks["net"]) != 1 || blocks["net"][0] != want {
		t.Errorf("blocks %v, want %s of net", blocks, want)
	}
	if s.Leases[0].Pool != "net-10-0-0-32-27" {
		t.Error("the snapshot itself was changed")
	}
}
