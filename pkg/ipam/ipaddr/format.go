package ipaddr

import (
	"fmt"
	"net/netip"
	"strings"

	"go4.org/netipx"
)

// FormatSet writes a set as "a-b, c", in address order.
func FormatSet(s *netipx.IPSet) string {
	var out []string
	for _, r := range s.Ranges() {
		out = append(out, FormatRange(r))
	}
	return strings.Join(out, ", ")
}

// FormatRange writes a range as "a-b", or as "a" when it holds one address.
func FormatRange(r netipx.IPRange) string {
	if r.From() == r.To() {
		return r.From().String()
	}
	return r.From().String() + "-" + r.To().String()
}

// ObjectName returns the name of the BCSNetIP of an address: the address itself, or, for IPv6, written
// out in full with "-" in place of ":".
func ObjectName(a netip.Addr) string {
	if a.Is4() {
		return a.String()
	}
	return strings.ReplaceAll(a.StringExpanded(), ":", "-")
}

// ParseObjectName inverts ObjectName. Any other spelling is refused.
func ParseObjectName(name string) (netip.Addr, error) {
	a, err := ParseAddr(strings.ReplaceAll(name, "-", ":"))
	if err != nil || ObjectName(a) != name {
		return netip.Addr{}, fmt.Errorf("%q is not the name of an address", name)
	}
	return a, nil
}
