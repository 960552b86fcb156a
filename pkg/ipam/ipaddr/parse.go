package ipaddr

import (
	"fmt"
	"net/netip"
	"strings"

	"go4.org/netipx"
)

// ParseRange reads one entry of an address list: a single address, a range "a-b" or "a~b" with both
// ends included, or a CIDR. It accepts no zones, no IPv4-mapped IPv6 addresses, no reversed ranges, no
// CIDR with host bits set and no range larger than a /64.
func ParseRange(s string) (netipx.IPRange, error) {
	s = strings.TrimSpace(s)
	if strings.Contains(s, "/") {
		return parseCIDR(s)
	}
	from, to, isRange := strings.Cut(s, "-")
	if !isRange {
		from, to, isRange = strings.Cut(s, "~")
	}
	if !isRange {
		to = from
	}
	a, err := ParseAddr(from)
	if err != nil {
		return netipx.IPRange{}, fmt.Errorf("%q is not an address, a range a-b or a CIDR", s)
	}
	b, err := ParseAddr(to)
	if err != nil {
		return netipx.IPRange{}, fmt.Errorf("%q is not an address, a range a-b or a CIDR", s)
	}
	switch {
	case a.Is4() != b.Is4():
		return netipx.IPRange{}, fmt.Errorf("range %q mixes IPv4 and IPv6", s)
	case b.Less(a):
		return netipx.IPRange{}, fmt.Errorf("range %q is reversed: write %s-%s", s, b, a)
	case sizeOf(a, b).Cmp(maxRange) > 0:
		return netipx.IPRange{}, fmt.Errorf("range %q is larger than a /64, the largest that a pool can hold", s)
	}
	return unmapped(s, netipx.IPRangeFrom(a, b))
}

// unmapped refuses a range that has IPv4-mapped addresses, which are those of IPv4 by another name.
func unmapped(s string, r netipx.IPRange) (netipx.IPRange, error) {
	if mapped := netipx.RangeOfPrefix(netip.PrefixFrom(netip.AddrFrom16([16]byte{10: 0xff, 11: 0xff}),
		96)); r.Overlaps(mapped) {
		return netipx.IPRange{}, fmt.Errorf("range %q has IPv4-mapped addresses: leave out ::ffff:0:0/96", s)
	}
	return r, nil
}

func parseCIDR(s string) (netipx.IPRange, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		return netipx.IPRange{}, fmt.Errorf("%q is not an address, a range a-b or a CIDR", s)
	}
	if p != p.Masked() {
		return netipx.IPRange{}, fmt.Errorf("%q is one address with a length: write %s for the address, "+
			"or %s for all of them",
			s, p.Addr(), p.Masked())
	}
	if p.Addr().BitLen()-p.Bits() > 64 {
		return netipx.IPRange{}, fmt.Errorf("range %q is larger than a /64, the largest that a pool can hold", s)
	}
	return unmapped(s, netipx.RangeOfPrefix(p))
}

// ParseNetwork reads a subnet of hosts: a CIDR without host bits, of any size. An IPv4-mapped IPv6 address is
// refused, as ParseAddr does.
func ParseNetwork(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(strings.TrimSpace(s))
	switch {
	case err != nil || p.Addr().Is4In6():
		return netip.Prefix{}, fmt.Errorf("%q is not a CIDR", s)
	case p != p.Masked():
		return netip.Prefix{}, fmt.Errorf("CIDR %q has host bits set: write %s", s, p.Masked())
	}
	return p, nil
}

// ParseAddr reads one address, IPv4 or IPv6, without zone; IPv4-mapped IPv6 addresses are refused,
// because one address must have one name.
func ParseAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(strings.TrimSpace(s))
	if err != nil || a.Zone() != "" || a.Is4In6() {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address", s)
	}
	return a, nil
}
