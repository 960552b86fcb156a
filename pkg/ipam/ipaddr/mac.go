package ipaddr

import (
	"fmt"
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
