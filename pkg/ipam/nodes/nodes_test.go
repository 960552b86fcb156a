package nodes

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

func ips(list ...string) (out []netip.Addr) {
	for _, a := range list {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

// TestTable: a table finds nodes by their addresses, and keeps nothing of a node that is gone.
func TestTable(t *testing.T) {
	x := New()
	a, b, c := ips("192.168.0.1")[0], ips("192.168.0.2")[0], ips("192.168.0.3")[0]
	expect := func(when string, host netip.Addr, node string, machine ...netip.Addr) {
		t.Helper()
		name, ok := x.Of(host)
		if name != node || ok != (node != "") || x.Has(host) != ok {
			t.Errorf("%s: node %q has %s, want %q", when, name, host, node)
		}
		if got := slices.Collect(x.Machine(host)); !slices.Equal(got, machine) {
			t.Errorf("%s: the machine of %s has %v, want %v", when, host, got, machine)
		}
	}
	expect("nothing is known", a, "", a)
	x.Set("n", ipam.Node{Addrs: []netip.Addr{a, b}, Internal: []netip.Addr{a}})
	expect("one node", a, "n", a, b)
	expect("its other address", b, "n", a, b)
	x.Set("m", ipam.Node{Addrs: []netip.Addr{b, c}})
	expect("two claim the other address", a, "n", a)
	expect("by the address that two claim", b, "m", b)
	if old := x.Set("m", ipam.Node{}); !slices.Equal(old.Addrs, []netip.Addr{b, c}) {
		t.Errorf("the old node has %v", old.Addrs)
	}
	expect("it is gone", b, "n", a, b)
	expect("its own address", c, "", c)

	p := ipam.Pool{HostSubnets: ipam.Networks{netip.MustParsePrefix("192.168.0.0/31"): {}}}
	if got := x.Covered(&p); got != 1 {
		t.Errorf("a subnet covers %d nodes, want 1", got)
	}
	p.Hosts = map[netip.Addr]struct{}{b: {}}
	if got := x.Covered(&p); got != 0 {
		t.Errorf("of a node that is listed, %d are covered besides", got)
	}
	x.Set("n", ipam.Node{})
	if len(x.byName)+len(x.byAddr) > 0 {
		t.Errorf("the table keeps %v, %v", x.byName, x.byAddr)
	}
}
