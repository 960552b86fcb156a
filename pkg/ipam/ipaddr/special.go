package ipaddr

import (
	"net/netip"

	"go4.org/netipx"
)

// Special returns the first prefix whose addresses cannot be given to pods and of which the set has some, and the kind
// of these addresses; ok is false if the set has none. Link-local addresses are among them, as each machine chooses its
// own. The rule of BCSNetPool for net has the same prefixes.
func Special(s *netipx.IPSet) (found netip.Prefix, kind string, ok bool) {
	for _, p := range [...]struct{ prefix, kind string }{
		{"0.0.0.0/8", "unspecified"},
		{"127.0.0.0/8", "loopback"},
		{"169.254.0.0/16", "link-local"},
		{"224.0.0.0/4", "multicast"},
		{"240.0.0.0/4", "reserved"},
		{"::/128", "unspecified"},
		{"::1/128", "loopback"},
		{linkLocal6, "link-local"},
		{"ff00::/8", "multicast"},
	} {
		if found = netip.MustParsePrefix(p.prefix); s.OverlapsPrefix(found) {
			return found, p.kind, true
		}
	}
	return netip.Prefix{}, "", false
}

const linkLocal6 = "fe80::/10"

// Reaches reports whether machines of a subnet can send to a gateway without another route: the gateway lies in the
// subnet, or is a link-local IPv6 address and the subnet is of IPv6.
func Reaches(subnet netip.Prefix, gateway netip.Addr) bool {
	return subnet.Contains(gateway) || subnet.Addr().Is6() && netip.MustParsePrefix(linkLocal6).Contains(gateway)
}
