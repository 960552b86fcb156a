package claim

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"go4.org/netipx"
	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// TestNaming: whatever claims name, and in whichever order that changes, those that share an address are found, and no
// others.
func TestNaming(t *testing.T) {
	at := func(family6 bool, i int) netip.Addr {
		if family6 {
			return ipaddr.Advance(netip.MustParseAddr("2001:db8::"), uint64(i))
		}
		return ipaddr.Advance(netip.MustParseAddr("255.255.0.0"), uint64(i))
	}
	rapid.Check(t, func(t *rapid.T) {
		n, model := newNaming(), map[string]*netipx.IPSet{}
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			name := fmt.Sprint("shop/", rapid.IntRange(0, 9).Draw(t, "claim"))
			var ranges []netipx.IPRange
			for range rapid.IntRange(0, 3).Draw(t, "ranges") {
				v6, from := rapid.Bool().Draw(t, "v6"), rapid.IntRange(0, 0xffff).Draw(t, "from")
				size := rapid.SampledFrom([]int{0, 1, 63, 64, 100, 4095, 4096, 0xffff}).Draw(t, "size")
				ranges = append(ranges, netipx.IPRangeFrom(at(v6, from), at(v6, min(from+size, 0xffff))))
			}
			var now *netipx.IPSet
			if len(ranges) > 0 {
				now = ipaddr.SetOf(ranges...)
			}
			if before := n.set(name, now); before != model[name] {
				t.Fatalf("%s named %v before, want %v", name, before, model[name])
			}
			if delete(model, name); now != nil {
				model[name] = now
			}
			var want []string
			for other, set := range model {
				if other != name && now != nil && now.Overlaps(set) {
					want = append(want, other)
				}
			}
			slices.Sort(want)
			if got := slices.Sorted(maps.Keys(n.sharing(name, now))); !slices.Equal(got, want) {
				t.Fatalf("%s shares with %v, want %v", name, got, want)
			}
		}
		for name := range model {
			n.set(name, nil)
		}
		if len(n.named)+len(n.buckets)+len(n.wide) > 0 {
			t.Fatalf("left: %v", n)
		}
	})
}

// TestNamingOfHugeRanges: ranges that no loop ends are compared with all claims.
func TestNamingOfHugeRanges(t *testing.T) {
	n := newNaming()
	huge := ipaddr.SetOf(netipx.MustParseIPRange("2001:db8::-2001:db8:0:1::5")) // a /64, and six more
	n.set("shop/huge", huge)
	n.set("shop/one", ipaddr.SetOfAddrs(netip.MustParseAddr("2001:db8:0:1::3")))
	for name, other := range map[string]string{"shop/huge": "shop/one", "shop/one": "shop/huge"} {
		if got := n.sharing(name, n.named[name]); len(got) != 1 || got[other] == nil {
			t.Errorf("%s shares with %v", name, got)
		}
	}
}

// BenchmarkRivals: 10,000 claims, of which each names one address of its own.
func BenchmarkRivals(b *testing.B) {
	s := NewStates(leading(b))
	one := func(i int) *netipx.IPSet {
		return ipaddr.SetOfAddrs(ipaddr.Advance(netip.MustParseAddr("10.20.0.0"), uint64(i)))
	}
	const claims = 10_000
	for i := range claims {
		s.rivals(fmt.Sprint("shop/", i), one(i))
	}
	for i := 0; b.Loop(); i++ {
		s.rivals(fmt.Sprint("shop/", i%claims), one(i%claims))
	}
}
