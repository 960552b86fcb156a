package ipam

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

func TestNewPlan(t *testing.T) {
	type plan struct {
		Usable, Single, Ranged string
		Size                   uint64
		Notes                  []string
	}
	ranged := func(set string, size uint64) plan { return plan{Usable: set, Ranged: set, Size: size} }
	for name, tc := range map[string]struct {
		spec PlanSpec
		want plan
	}{
		"network, broadcast and gateway are left out": {
			spec: PlanSpec{Net: "10.0.0.0", Mask: 29, Gateway: "10.0.0.1", Available: []string{"10.0.0.0/29"}},
			want: ranged("10.0.0.2-10.0.0.6", 5),
		},
		"without a gateway no address is left out for one": {
			spec: PlanSpec{Net: "10.0.0.0", Mask: 29, Available: []string{"10.0.0.0/29"}},
			want: ranged("10.0.0.1-10.0.0.6", 6),
		},
		"a /31 without a gateway": {spec: PlanSpec{Net: "10.0.0.4", Mask: 31, Available: []string{"10.0.0.4/31"}},
			want: ranged("10.0.0.4-10.0.0.5", 2)},
		"a /127 without a gateway": {spec: PlanSpec{Net: "2001:db8::", Mask: 127,
			Available: []string{"2001:db8::/127"}}, want: ranged("2001:db8::-2001:db8::1", 2)},
		"also when written singly": {
			spec: PlanSpec{
				Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1",
				Available: []string{"10.0.0.0", "10.0.0.1", "10.0.0.255", "10.0.0.7"},
			},
			want: plan{Usable: "10.0.0.7", Single: "10.0.0.7", Size: 1},
		},
		"a gateway in the middle splits a range": {
			spec: PlanSpec{Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.12", Available: []string{"10.0.0.10-10.0.0.14"}},
			want: ranged("10.0.0.10-10.0.0.11, 10.0.0.13-10.0.0.14", 4),
		},
		"a /31 has no network and no broadcast": {
			spec: PlanSpec{Net: "10.0.0.4", Mask: 31, Gateway: "10.0.0.4", Available: []string{"10.0.0.4/31"}},
			want: ranged("10.0.0.5", 1),
		},
		"a /30 has": {
			spec: PlanSpec{Net: "10.0.0.4", Mask: 30, Gateway: "10.0.0.5", Available: []string{"10.0.0.4/30"}},
			want: ranged("10.0.0.6", 1),
		},
		"a /32 is its gateway": {
			spec: PlanSpec{Net: "10.0.0.4", Mask: 32, Gateway: "10.0.0.4", Available: []string{"10.0.0.4"}},
		},
		"a /127": {
			spec: PlanSpec{Net: "2001:db8::", Mask: 127, Gateway: "2001:db8::1", Available: []string{"2001:db8::/127"}},
			want: ranged("2001:db8::", 1),
		},
		"a /128 is its gateway": {
			spec: PlanSpec{Net: "2001:db8::", Mask: 128, Gateway: "2001:db8::", Available: []string{"2001:db8::"}},
		},
		"IPv6 has no broadcast": {
			spec: PlanSpec{Net: "2001:db8::", Mask: 126, Gateway: "2001:db8::1", Available: []string{"2001:db8::/126"}},
			want: ranged("2001:db8::2-2001:db8::3", 2),
		},
		"a whole /64": {
			spec: PlanSpec{Net: "2001:db8::", Mask: 64, Gateway: "2001:db8::1", Available: []string{"2001:db8::/64"}},
			want: ranged("2001:db8::2-2001:db8::ffff:ffff:ffff:ffff", math.MaxUint64-1),
		},
		"a /64 out of a larger subnet counts 2^64-1": {
			spec: PlanSpec{Net: "2001:db8::", Mask: 48, Gateway: "2001:db8::1",
				Available: []string{"2001:db8:0:1::/64"}},
			want: ranged("2001:db8:0:1::-2001:db8:0:1:ffff:ffff:ffff:ffff", math.MaxUint64),
		},
		"two halves of a /64": {
			spec: PlanSpec{
				Net: "2001:db8::", Mask: 48, Gateway: "2001:db8::1", Available: []string{"2001:db8:0:1::/65",
					"2001:db8:0:2::/65"},
			},
			want: ranged("2001:db8:0:1::-2001:db8:0:1:7fff:ffff:ffff:ffff, "+
				"2001:db8:0:2::-2001:db8:0:2:7fff:ffff:ffff:ffff", math.MaxUint64),
		},
		"a /64 less one address": {
			spec: PlanSpec{
				Net: "2001:db8::", Mask: 48, Gateway: "2001:db8::1",
				Available: []string{"2001:db8:0:1::/64"}, Exclude: []string{"2001:db8:0:1::8"},
			},
			want: ranged("2001:db8:0:1::-2001:db8:0:1::7, 2001:db8:0:1::9-2001:db8:0:1:ffff:ffff:ffff:ffff",
				math.MaxUint64),
		},
		"a link-local gateway lies outside the subnet": {
			spec: PlanSpec{Net: "2001:db8::", Mask: 126, Gateway: "fe80::1", Available: []string{"2001:db8::/126"}},
			want: ranged("2001:db8::1-2001:db8::3", 3),
		},
		"excluded loopback addresses of a large subnet do no harm": {
			spec: PlanSpec{Net: "64.0.0.0", Mask: 2, Available: []string{"126.255.255.254-127.0.0.1"},
				Exclude: []string{"127.0.0.0/8"}},
			want: ranged("126.255.255.254-126.255.255.255", 2),
		},
		"nothing available": {
			spec: PlanSpec{Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1"},
		},
		"everything excluded": {
			spec: PlanSpec{
				Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: []string{"10.0.0.8/30"},
				Exclude: []string{"10.0.0.0/24"},
			},
		},
		"all notations, mixed": {
			spec: PlanSpec{
				Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1",
				Available: []string{"10.0.0.20", "10.0.0.10-10.0.0.12", "10.0.0.30~10.0.0.31", "10.0.0.40/31"},
				Exclude:   []string{"10.0.0.11", "10.0.0.41-10.0.0.50"},
			},
			want: plan{
				Usable: "10.0.0.10, 10.0.0.12, 10.0.0.20, 10.0.0.30-10.0.0.31, 10.0.0.40", Single: "10.0.0.20",
				Ranged: "10.0.0.10, 10.0.0.12, 10.0.0.30-10.0.0.31, 10.0.0.40", Size: 6,
			},
		},
		"overlap is noted once and counts once": {
			spec: PlanSpec{
				Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1",
				Available: []string{"10.0.0.50", "10.0.0.10-10.0.0.19", "10.0.0.15", "10.0.0.12-10.0.0.13"},
			},
			want: plan{
				Usable: "10.0.0.10-10.0.0.19, 10.0.0.50", Single: "10.0.0.15, 10.0.0.50", Ranged: "10.0.0.10-10.0.0.19",
				Size: 11,
				Notes: []string{"availableIPs: 10.0.0.10-10.0.0.19 and 10.0.0.12-10.0.0.13 overlap; shared addresses " +
					"count once"},
			},
		},
		"the same address twice": {
			spec: PlanSpec{Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: []string{"10.0.0.9", "10.0.0.9"}},
			want: plan{
				Usable: "10.0.0.9", Single: "10.0.0.9", Size: 1,
				Notes: []string{"availableIPs: 10.0.0.9 and 10.0.0.9 overlap; shared addresses count once"},
			},
		},
		"neighbours do not overlap": {
			spec: PlanSpec{Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: []string{"10.0.0.8/30",
				"10.0.0.12"}},
			want: plan{Usable: "10.0.0.8-10.0.0.12", Single: "10.0.0.12", Ranged: "10.0.0.8-10.0.0.11", Size: 5},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := NewPlan(tc.spec)
			if err != nil {
				t.Fatal(err)
			}
			got := plan{
				ipaddr.FormatSet(p.Usable), ipaddr.FormatSet(p.Single), ipaddr.FormatSet(p.Ranged),
				ipaddr.SizeOfSet(p.Usable), p.Notes,
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewPlanRefuses(t *testing.T) {
	const tooLarge = "availableIPs hold more addresses than a /64, the largest that a pool can hold"
	v4 := func(available ...string) PlanSpec {
		return PlanSpec{Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: available}
	}
	v6 := func(available ...string) PlanSpec {
		return PlanSpec{Net: "2001:db8::", Mask: 48, Gateway: "2001:db8::1", Available: available}
	}
	for name, tc := range map[string]struct {
		spec PlanSpec
		want string
	}{
		"net that is no address": {PlanSpec{Net: "ten", Mask: 24, Gateway: "10.0.0.1"}, `net: "ten" is not an IP address`},
		"net with prefix length": {PlanSpec{Net: "10.0.0.0/24", Mask: 24, Gateway: "10.0.0.1"}, `net: "10.0.0.0/24" is not an IP address`},
		"net with host bits": {PlanSpec{Net: "10.0.0.7", Mask: 24, Gateway: "10.0.0.1"},
			"net 10.0.0.7 has host bits set: the subnet is 10.0.0.0/24"},
		"mask 0": {PlanSpec{Net: "0.0.0.0", Mask: 0, Gateway: "10.0.0.1"},
			"mask 0 is not between 1 and 32"},
		"mask 33": {PlanSpec{Net: "10.0.0.0", Mask: 33, Gateway: "10.0.0.1"},
			"mask 33 is not between 1 and 32"},
		"mask 129": {PlanSpec{Net: "2001:db8::", Mask: 129, Gateway: "2001:db8::1"},
			"mask 129 is not between 1 and 128"},
		"gateway elsewhere": {PlanSpec{Net: "10.0.0.0", Mask: 24, Gateway: "10.0.1.1"},
			"gateway 10.0.1.1 is not in subnet 10.0.0.0/24"},
		"gateway of other family": {PlanSpec{Net: "10.0.0.0", Mask: 24, Gateway: "2001:db8::1"},
			"gateway 2001:db8::1 is not in subnet 10.0.0.0/24"},
		"IPv6 gateway elsewhere": {PlanSpec{Net: "2001:db8::", Mask: 64, Gateway: "2001:db8:0:1::1"},
			"gateway 2001:db8:0:1::1 is not in subnet 2001:db8::/64"},
		"net multicast": {PlanSpec{Net: "224.0.0.0", Mask: 24, Gateway: "224.0.0.1"},
			"net: addresses of 224.0.0.0/4 (multicast) cannot be given to pods"},
		"net link-local": {PlanSpec{Net: "fe80::", Mask: 64},
			"net: addresses of fe80::/10 (link-local) cannot be given to pods"},
		"loopback in a large subnet": {PlanSpec{Net: "64.0.0.0", Mask: 2,
			Available: []string{"100.0.0.1", "126.255.255.255-127.0.0.1"}},
			"availableIPs: addresses of 127.0.0.0/8 (loopback) cannot be given to pods"},
		"entries of both lists out of the subnet": {
			PlanSpec{
				Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: []string{"10.0.0.9", "10.0.1.1"},
				Exclude: []string{"10.0.0.250-10.0.1.5"},
			},
			`availableIPs[1]: "10.0.1.1" is not in subnet 10.0.0.0/24` + "\n" + `excludeIPs[0]: "10.0.0.250-10.0.1.5" is not in subnet 10.0.0.0/24`,
		},
		"a range around the subnet":   {v4("9.0.0.0-11.0.0.0"), `availableIPs[0]: "9.0.0.0-11.0.0.0" is not in subnet 10.0.0.0/24`},
		"entries of the other family": {v4("2001:db8::1"), `availableIPs[0]: "2001:db8::1" is not of the family of subnet 10.0.0.0/24`},
		"malformed entries": {
			v4("10.0.0.9-10.0.0.5", "x"),
			`availableIPs[0]: range "10.0.0.9-10.0.0.5" is reversed: write 10.0.0.5-10.0.0.9` + "\n" +
				`availableIPs[1]: "x" is not an address, a range a-b or a CIDR`,
		},
		"two neighbouring /64s, which are one range": {v6("2001:db8:0:2::/64", "2001:db8:0:3::/64"), tooLarge},
		"two /64s apart":     {v6("2001:db8:0:2::/64", "2001:db8:0:4::/64"), tooLarge},
		"a /64 and one more": {v6("2001:db8:0:2::/64", "2001:db8:0:4::9"), tooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := NewPlan(tc.spec)
			if diff := cmp.Diff(tc.want, textOf(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(Plan{}, p, equalPlans); diff != "" {
				t.Errorf("a plan came with the error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewPlanReportsTenWrongEntries(t *testing.T) {
	for wrong, more := range map[int]string{
		10: "", 11: "availableIPs: 1 more entries are wrong", 500: "availableIPs: 490 more entries are wrong",
	} {
		t.Run(fmt.Sprint(wrong), func(t *testing.T) {
			spec := PlanSpec{Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: []string{"10.0.0.9"}}
			var want []string
			for i := range wrong {
				spec.Available = append(spec.Available, fmt.Sprint("bad", i))
				if i < 10 {
					want = append(want, fmt.Sprintf(`availableIPs[%d]: "bad%d" is not an address, a range a-b or a CIDR`, i+1, i))
				}
			}
			if more != "" {
				want = append(want, more)
			}
			_, err := NewPlan(spec)
			if diff := cmp.Diff(want, strings.Split(textOf(err), "\n")); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanAddresses(t *testing.T) {
	p, err := NewPlan(PlanSpec{
		Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: []string{"10.0.0.8/30", "10.0.0.5", "10.0.0.9"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(addrs("10.0.0.5", "10.0.0.9"), p.Addresses(false), equalPlans); diff != "" {
		t.Errorf("single addresses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(addrs("10.0.0.5", "10.0.0.8", "10.0.0.9", "10.0.0.10", "10.0.0.11"), p.Addresses(true),
		equalPlans); diff != "" {
		t.Errorf("all addresses (-want +got):\n%s", diff)
	}
}

// equalPlans compares what go-cmp cannot look into.
var equalPlans = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
	cmp.Comparer(func(a, b *netipx.IPSet) bool { return a == b || a != nil && b != nil && a.Equal(b) }),
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func addrs(list ...string) (out []netip.Addr) {
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}
