package block

import (
	"net/netip"
	"strings"
	"testing"

	"go4.org/netipx"
	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// TestBlockName: names are contracts between replicas and with whoever reads them.
func TestBlockName(t *testing.T) {
	for block, want := range map[string]string{
		"10.0.0.32/27":    "net-a-10-0-0-32-27",
		"10.0.0.5/32":     "net-a-10-0-0-5-32",
		"fd00::1:0/112":   "net-a-fd00-0000-0000-0000-0000-0000-0001-0000-112",
		"fd00:0:0:1::/64": "net-a-fd00-0000-0000-0001-0000-0000-0000-0000-64",
	} {
		if got := Name("net-a", netip.MustParsePrefix(block)); got != want {
			t.Errorf("%s: %q, want %q", block, got, want)
		}
		if got := OfName(want, "net-a").String(); got != block {
			t.Errorf("%q is taken for %s", want, got)
		}
	}
	for _, name := range []string{
		"", "net-a", "net-a-", "net-a-27", "net-b-10-0-0-32-27", "net-a-10-0-0-32", "net-a-10-0-0-32-33", "net-a-10-0-0-32-027",
		"net-a-web-10-0-0-32-27", "net-a-10.0.0.32-27", "net-a-fd00--1-112",
	} {
		if got := OfName(name, "net-a"); got.IsValid() {
			t.Errorf("%q is taken for the block %s", name, got)
		}
	}
}

func TestNewGrid(t *testing.T) {
	for name, tc := range map[string]struct {
		subnet string
		usable []string
		length int
		first  string
		n      uint64
		text   string
	}{
		"a whole subnet":          {"10.0.0.0/24", []string{"10.0.0.1-10.0.0.254"}, 27, "10.0.0.0/27", 8, ""},
		"a range inside blocks":   {"10.0.0.0/24", []string{"10.0.0.40-10.0.0.100"}, 27, "10.0.0.32/27", 3, ""},
		"two ranges with a gap":   {"10.0.0.0/16", []string{"10.0.1.0/24", "10.0.9.0/24"}, 24, "10.0.1.0/24", 9, ""},
		"single addresses":        {"10.0.0.0/24", []string{"10.0.0.2-10.0.0.5"}, 32, "10.0.0.2/32", 4, ""},
		"none usable":             {"10.0.0.0/24", nil, 27, "", 0, ""},
		"as many as there may be": {"10.0.0.0/8", []string{"10.0.0.0/16"}, 32, "10.0.0.0/32", 65536, ""},
		"one too many": {
			"10.0.0.0/8", []string{"10.0.0.0/16", "10.1.0.0"}, 32, "", 0,
			"blockSize 32 makes more than 65536 blocks of 10.0.0.0-10.1.0.0: use a shorter one, or several pools",
		},
		"no longer than the subnet": {
			"10.0.0.0/24", []string{"10.0.0.0/25"}, 24, "", 0,
			"blockSize 24 is not between 25 and 32: a block is a part of the subnet 10.0.0.0/24",
		},
		"longer than an address": {
			"10.0.0.0/24", []string{"10.0.0.0/25"}, 33, "", 0,
			"blockSize 33 is not between 25 and 32: a block is a part of the subnet 10.0.0.0/24",
		},
		"IPv6":        {"fd00::/48", []string{"fd00:0:0:1::/72"}, 80, "fd00:0:0:1::/80", 256, ""},
		"IPv6, a /64": {"fd00::/60", []string{"fd00:0:0:1::/64"}, 64, "fd00:0:0:1::/64", 1, ""},
		"IPv6, far apart": {
			"fd00::/16", []string{"fd00::/112", "fd00:ffff::/112"}, 112, "", 0,
			"blockSize 112 makes more than 65536 blocks of fd00::-fd00:ffff::ffff: use a shorter one, or several pools",
		},
		"IPv6, far apart, large": {"fd00::/16", []string{"fd00::/112", "fd00:ff::/112"}, 32, "fd00::/32", 256, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var usable []netipx.IPRange
			for _, text := range tc.usable {
				r, err := ipaddr.ParseRange(text)
				if err != nil {
					t.Fatal(err)
				}
				usable = append(usable, r)
			}
			g, err := NewGrid(ipaddr.SetOf(usable...), netip.MustParsePrefix(tc.subnet), tc.length)
			if err == nil && tc.text != "" || err != nil && err.Error() != tc.text {
				t.Fatalf("error %v, want %q", err, tc.text)
			}
			if g.n != tc.n {
				t.Errorf("%d blocks, want %d", g.n, tc.n)
			}
			if tc.n > 0 && g.Prefix(0).String() != tc.first {
				t.Errorf("the first block is %s, want %s", g.Prefix(0), tc.first)
			}
		})
	}
}

// TestGridNumbers: every usable address lies in the block of its number, numbers are in address order, no two blocks
// have one name.
func TestGridNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		subnet := netip.MustParsePrefix(rapid.SampledFrom([]string{"10.0.0.0/16", "fd00:1:2::/48", "fd00::/16"}).Draw(t, "subnet"))
		length := rapid.IntRange(subnet.Bits()+1, subnet.Bits()+16).Draw(t, "length")
		var addrs []netip.Addr
		for range rapid.IntRange(1, 8).Draw(t, "addresses") {
			b := subnet.Addr().AsSlice()
			for i := subnet.Bits() / 8; i < len(b); i++ {
				b[i] = rapid.Byte().Draw(t, "byte")
			}
			a, _ := netip.AddrFromSlice(b)
			addrs = append(addrs, a)
		}
		g, err := NewGrid(ipaddr.SetOfAddrs(addrs...), subnet, length)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]uint64{}
		for _, a := range addrs {
			n, ok := g.NumberOf(a)
			if !ok || !g.Prefix(n).Contains(a) || g.Prefix(n) != g.Prefix(n).Masked() {
				t.Fatalf("%s has block %d, %t: %s", a, n, ok, g.Prefix(n))
			}
			for _, end := range []netip.Addr{g.Prefix(n).Addr(), netipx.PrefixLastIP(g.Prefix(n))} {
				if at, ok := g.NumberOf(end); !ok || at != n {
					t.Fatalf("%s of block %d has number %d, %t", end, n, at, ok)
				}
			}
			name := Name("p", g.Prefix(n))
			if other, taken := names[name]; taken && other != n {
				t.Fatalf("blocks %d and %d are both called %s", n, other, name)
			}
			if names[name] = n; !strings.HasSuffix(name, "-"+g.Prefix(n).String()[strings.IndexByte(g.Prefix(n).String(), '/')+1:]) {
				t.Fatalf("name %s of %s", name, g.Prefix(n))
			}
		}
		last := g.Prefix(g.n - 1)
		if _, ok := g.NumberOf(netipx.PrefixLastIP(last).Next()); ok {
			t.Fatal("an address behind the last block has a number")
		}
	})
}
