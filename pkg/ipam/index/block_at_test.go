package index

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// TestBlockAt: which pool has a block, and whose it is.
func TestBlockAt(t *testing.T) {
	net := pool(t, "net", "10.0.0.0/24", []string{"10.0.0.0-10.0.0.31", "10.0.0.64-10.0.0.95"}, splitInto(28), byBindAlone)
	over := pool(t, "over", "10.0.0.0/16", []string{"10.0.0.0/24"}, splitInto(28), priority(1), created(9))
	x := indexOf(net, over, aBlock(t, net, "10.0.0.0/28", "bank"), aBlock(t, over, "10.0.0.64/28", "shop", terminating),
		pool(t, "flat", "10.0.1.0/24", []string{"10.0.1.0/24"}),
		pool(t, "net6", "2001:db8::/64", []string{"2001:db8::/112"}, splitInto(120)))
	for addrs, want := range map[string]string{
		"10.0.0.0/28":       "net: net-10-0-0-0-28 of bank",    // where it exists, whatever the priority
		"10.0.0.64/28":      "over: over-10-0-0-64-28 of shop", // also while it is being deleted
		"10.0.0.16/28":      "net",                             // where it is served: the older pool has the shared addresses
		"10.0.0.48/28":      "over",
		"10.0.0.64/27":      "", // of another length
		"10.0.0.72/28":      "", // not aligned
		"10.0.1.0/28":       "", // not split
		"10.9.0.0/28":       "",
		"2001:db8::100/120": "net6",
		"2001:db8:1::/120":  "",
	} {
		parent, b, ok := x.Pools.BlockAt(netip.MustParsePrefix(addrs))
		got := parent
		if b.Name != "" {
			got += ": " + b.Name + " of " + b.Owner()
		}
		if got != want || ok != (want != "") {
			t.Errorf("%s: %q, %t, want %q", addrs, got, ok, want)
		}
	}
}

// TestBlocksInOrder: a namespace draws first from its blocks that have a priority, by that, whichever pools they are
// of.
func TestBlocksInOrder(t *testing.T) {
	a := pool(t, "a", "10.0.0.0/24", []string{"10.0.0.0/24"}, splitInto(31), byBindAlone)
	b := pool(t, "b", "10.0.1.0/24", []string{"10.0.1.0/24"}, splitInto(31), byBindAlone, priority(5))
	blocks := []ipam.Pool{
		aBlock(t, a, "10.0.0.2/31", "shop", priority(7)), aBlock(t, a, "10.0.0.8/31", "shop"),
		aBlock(t, a, "10.0.0.4/31", "shop", priority(9)), aBlock(t, b, "10.0.1.2/31", "shop", priority(8)),
		aBlock(t, b, "10.0.1.4/31", "shop"), aBlock(t, b, "10.0.1.6/31", "bank", priority(10)),
	}
	drawn := func(x *Index, options ...func(*ipam.PickRequest)) (out []string) {
		t.Helper()
		for {
			picks, refusal := x.Pick(want(options...), now)
			if refusal != nil {
				return out
			}
			for _, p := range picks {
				if n := len(out); n == 0 || out[n-1] != p.Pool.Name {
					out = append(out, p.Pool.Name)
				}
			}
		}
	}
	inOrder := []string{
		"a-10-0-0-4-31", "b-10-0-1-2-31", "a-10-0-0-2-31", // by their own priorities
		"b-10-0-1-4-31", "a-10-0-0-8-31", // by those of their parents
	}
	if diff := cmp.Diff(inOrder, drawn(indexOf(append([]ipam.Pool{a, b}, blocks...)...))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(inOrder, drawn(indexOf(append(blocks, b, a)...))); diff != "" {
		t.Errorf("in another order of coming (-want +got):\n%s", diff)
	}
	ofA := []string{"a-10-0-0-4-31", "a-10-0-0-2-31", "a-10-0-0-8-31"}
	got := drawn(indexOf(append(blocks, b, a)...), func(w *ipam.PickRequest) { w.Pools = []string{"a"} })
	if diff := cmp.Diff(ofA, got); diff != "" {
		t.Errorf("of one pool (-want +got):\n%s", diff)
	}

	// An order that changes, a block that goes, and a parent that is split no longer and again.
	x := indexOf(append([]ipam.Pool{a, b}, blocks...)...)
	x.Pools.SetPool(aBlock(t, a, "10.0.0.8/31", "shop", priority(20)))
	x.Pools.SetPool(aBlock(t, a, "10.0.0.4/31", "shop"))
	x.Pools.RemovePool("b-10-0-1-2-31")
	x.Pools.SetPool(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.0/24"}))
	x.Pools.SetPool(a)
	changed := []string{"a-10-0-0-8-31", "a-10-0-0-2-31", "b-10-0-1-4-31", "a-10-0-0-4-31"}
	if diff := cmp.Diff(changed, drawn(x)); diff != "" {
		t.Errorf("after changes (-want +got):\n%s", diff)
	}
}
