package address

import (
	"cmp"
	"net/netip"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"go4.org/netipx"
	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// drawSubnets are a few small subnets, disjoint and in order, that lie where names and numbers disagree.
func drawSubnets(t *rapid.T) []netip.Prefix {
	var b netipx.IPSetBuilder
	for range rapid.IntRange(1, 3).Draw(t, "subnets") {
		if rapid.Bool().Draw(t, "six") {
			a := netip.AddrFrom16([16]byte{
				rapid.SampledFrom([]byte{0x00, 0x10, 0x20, 0xfd}).Draw(t, "hi"), 1, 14: rapid.Byte().Draw(t, "lo"),
			})
			b.AddPrefix(netip.PrefixFrom(a, rapid.IntRange(118, 128).Draw(t, "bits")).Masked())
			continue
		}
		octet := rapid.SampledFrom([]byte{0, 1, 2, 8, 9, 10, 11, 19, 20, 96, 99, 100, 109, 128, 192, 255})
		a := netip.AddrFrom4([4]byte{octet.Draw(t, "a"), octet.Draw(t, "b"), octet.Draw(t, "c"), octet.Draw(t, "d")})
		b.AddPrefix(netip.PrefixFrom(a, rapid.IntRange(20, 32).Draw(t, "bits")).Masked())
	}
	set, err := b.IPSet()
	if err != nil {
		t.Fatal(err)
	}
	return set.Prefixes()
}

func every(subnets []netip.Prefix) (all []netip.Addr) {
	for _, s := range subnets {
		for a := s.Addr(); a.IsValid() && s.Contains(a); a = a.Next() {
			all = append(all, a)
		}
	}
	return all
}

func byName(a, b netip.Addr) int { return cmp.Compare(ipaddr.ObjectName(a), ipaddr.ObjectName(b)) }

// TestArrivals compares with a search through all addresses.
func TestArrivals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		subnets := drawSubnets(t)
		all := every(subnets)
		names := rapid.SliceOfN(rapid.SampledFrom(append(all, netip.MustParseAddr("10.0.0.77"))), 1, 5).Draw(t, "names")
		slices.SortFunc(names, byName)
		coming := nameOrder{subnets: subnets}
		for _, last := range names {
			var want netip.Addr
			for _, a := range all {
				if byName(a, last) > 0 && (!want.IsValid() || a.Less(want)) {
					want = a
				}
			}
			if got := coming.smallest(ipaddr.ObjectName(last)); got != want {
				t.Fatalf("after %s: got %v, want %v", last, got, want)
			}
		}
	})
}

// TestOrdered: all come in order, and what is in no subnet at the end at the latest.
func TestOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		subnets := drawSubnets(t)
		all := every(subnets)
		from := rapid.IntRange(0, len(all)-1).Draw(t, "from")
		sent := slices.Clone(all[from:])
		slices.SortFunc(sent, byName)
		var got []netip.Addr
		rows := &sortStream{
			begin: func() nameOrder { return nameOrder{subnets: subnets} },
			emit: func(part []resource.LeaseRow, below netip.Addr) error {
				for _, r := range part {
					if below.IsValid() && !r.Addr.Less(below) {
						t.Fatalf("%s is not below %s", r.Addr, below)
					}
					got = append(got, r.Addr)
				}
				return nil
			},
		}
		for _, a := range sent {
			if err := rows.add(resource.LeaseRow{Lease: &lease.Lease{Addr: a}}); err != nil {
				t.Fatal(err)
			}
		}
		if late, err := rows.end(); late != 0 || err != nil {
			t.Fatalf("%d late, %v", late, err)
		}
		if diff := gocmp.Diff(all[from:], got, gocmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestOrderedEarly: of a large subnet the first part comes long before the last address, and an address
// that belongs nowhere comes last.
func TestOrderedEarly(t *testing.T) {
	subnets := []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")}
	sent := every(subnets)
	stray := netip.MustParseAddr("10.3.0.1")
	sent = append(sent, stray)
	slices.SortFunc(sent, byName)
	passed, last := 0, netip.Addr{}
	rows := &sortStream{
		begin: func() nameOrder { return nameOrder{subnets: subnets} },
		emit: func(part []resource.LeaseRow, _ netip.Addr) error {
			if passed += len(part); len(part) > 0 {
				last = part[len(part)-1].Addr
			}
			return nil
		},
	}
	for i, a := range sent {
		if err := rows.add(resource.LeaseRow{Lease: &lease.Lease{Addr: a}}); err != nil {
			t.Fatal(err)
		}
		if i == firstPart && passed == 0 {
			t.Errorf("nothing has been passed on after %d addresses", i)
		}
	}
	if late, err := rows.end(); late != 1 || err != nil || last != stray || passed != len(sent) {
		t.Errorf("%d late, the last is %s, %d of %d passed on, %v", late, last, passed, len(sent), err)
	}
}
