package ipaddr

import (
	"fmt"
	"net/netip"
	"strings"
)

// ParseHost reads one address, alone or with the length of its subnet, as in 10.0.0.5/24: that is the address 10.0.0.5,
// and its pool has to have that length. bits is 0 if none is written. An address that is the network's, as in
// 10.0.0.0/24, is a CIDR, and refused.
func ParseHost(s string) (a netip.Addr, bits int, err error) {
	s = strings.TrimSpace(s)
	if !strings.Contains(s, "/") {
		a, err = ParseAddr(s)
		return a, 0, err
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil || p.Addr().Is4In6() || p.Bits() == 0:
		return netip.Addr{}, 0, fmt.Errorf("%q is not an address with the length of its subnet, as in 10.0.0.5/24", s)
	case p == p.Masked() && !p.IsSingleIP():
		return netip.Addr{}, 0, fmt.Errorf("%q is a CIDR, not an address", s)
	}
	return p.Addr(), p.Bits(), nil
}
