package address

import (
	"net/netip"
	"strconv"
	"strings"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// nameOrder knows which addresses of some subnets can still come in a list sorted by object names, in which 10.0.0.10
// comes before 10.0.0.9.
type nameOrder struct {
	// subnets are disjoint and sorted. Subnets without a later address are removed.
	subnets []netip.Prefix
}

// smallest returns the lowest address of the subnets whose object sorts after the given name; not valid if there is
// none. Successive calls must have ascending names.
func (a *nameOrder) smallest(after string) netip.Addr {
	for len(a.subnets) > 0 {
		if first := firstAfter(after, a.subnets[0]); first.IsValid() {
			return first
		}
		a.subnets = a.subnets[1:]
	}
	return netip.Addr{}
}

// firstAfter returns the lowest address of a subnet whose object sorts after name; not valid if there is none.
func firstAfter(name string, subnet netip.Prefix) netip.Addr {
	if lastName(subnet) <= name {
		return netip.Addr{}
	}
	for !subnet.IsSingleIP() {
		low := netip.PrefixFrom(subnet.Addr(), subnet.Bits()+1)
		if lastName(low) > name {
			subnet = low
			continue
		}
		subnet = netip.PrefixFrom(netipx.PrefixLastIP(low).Next(), low.Bits())
	}
	return subnet.Addr()
}

// lastName returns the greatest object name of a subnet. IPv6 names are written out in full, so the last address has
// it. For IPv4, each octet is the greatest as a string, because the dot after it sorts before digits.
func lastName(subnet netip.Prefix) string {
	last := netipx.PrefixLastIP(subnet)
	if !last.Is4() {
		return ipaddr.ObjectName(last)
	}
	from, to := subnet.Addr().As4(), last.As4()
	var octets [4]string
	for i := range octets {
		octets[i] = lastWord(from[i], to[i])
	}
	return strings.Join(octets[:], ".")
}

// lastWord returns the number from one to another whose decimal text is the greatest.
func lastWord(from, to byte) string {
	last := strconv.Itoa(int(from))
	for n := int(from) + 1; n <= int(to); n++ {
		last = max(last, strconv.Itoa(n))
	}
	return last
}
