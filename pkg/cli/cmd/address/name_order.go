package address

import (
	"net/netip"
	"strconv"
	"strings"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// nameOrder knows which addresses of some subnets can still come in a list that is in the order of the
// objects' names: there, 10.0.0.10 comes before 10.0.0.9.
type nameOrder struct {
	// subnets are disjoint, in order, and without those that have come to their end.
	subnets []netip.Prefix
}

// smallest returns the lowest address of the subnets that can come after an object of the given name; not
// valid when none can. The names of successive calls ascend.
func (a *nameOrder) smallest(after string) netip.Addr {
	for len(a.subnets) > 0 {
		if first := firstAfter(after, a.subnets[0]); first.IsValid() {
			return first
		}
		a.subnets = a.subnets[1:]
	}
	return netip.Addr{}
}

// firstAfter returns the lowest address of a subnet whose name comes after the given one; not valid when
// there is none.
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

// lastName returns the name that comes last among the objects of a subnet. In IPv6, where names are written out
// in full, it is that of the last address. In IPv4 every byte is the last in the order of words: no two numbers
// begin alike once the point behind them is counted.
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

// lastWord returns the number between two others that comes last in the order of words.
func lastWord(from, to byte) string {
	last := strconv.Itoa(int(from))
	for n := int(from) + 1; n <= int(to); n++ {
		last = max(last, strconv.Itoa(n))
	}
	return last
}
