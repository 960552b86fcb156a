package ipaddr

import (
	"fmt"
	"net"
	"net/netip"
)

// MAC returns the hardware address that goes with an IPv4 address, 02:02: and its four octets, as Contiv's
// netmaster derives it; empty for IPv6.
func MAC(a netip.Addr) string {
	if !a.Is4() {
		return ""
	}
	b := a.As4()
	return fmt.Sprintf("02:02:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
}

// OfMAC returns the address that has a MAC; invalid for a text that is no MAC of an address.
func OfMAC(text string) netip.Addr {
	mac, err := net.ParseMAC(text)
	if err != nil || len(mac) != 6 || mac[0] != 2 || mac[1] != 2 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte(mac[2:]))
}
