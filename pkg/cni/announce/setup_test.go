package announce

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"
)

// TestFits has links that some kernels cannot make: what is decided about them needs no more than their description.
func TestFits(t *testing.T) {
	attrs := netlink.LinkAttrs{Name: "eth0", MTU: 1500, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}}
	six := &attached{ips: []assigned{{addr: netip.MustParseAddr("2001:db8::7")}}}
	four := &attached{ips: []assigned{{addr: netip.MustParseAddr("192.0.2.7")}}}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"MAC of ipvlan":            {macFits(&netlink.IPVlan{LinkAttrs: attrs}), `"mac": true cannot be followed on eth0, of type ipvlan`},
		"MAC of ipvtap":            {macFits(&netlink.IPVtap{IPVlan: netlink.IPVlan{LinkAttrs: attrs}}), "of type ipvtap"},
		"MAC of macvlan":           {macFits(&netlink.Macvlan{LinkAttrs: attrs}), ""},
		"MAC of veth":              {macFits(&netlink.Veth{LinkAttrs: attrs}), ""},
		"another VLAN":             {vlanFits(&netlink.Vlan{LinkAttrs: attrs, VlanId: 7}, 8), "eth0 is in VLAN 7, and its address is of a pool in VLAN 8"},
		"the same VLAN":            {vlanFits(&netlink.Vlan{LinkAttrs: attrs, VlanId: 7}, 7), ""},
		"a pool without a VLAN":    {vlanFits(&netlink.Vlan{LinkAttrs: attrs, VlanId: 7}, 0), ""},
		"a link that shows none":   {vlanFits(&netlink.Veth{LinkAttrs: attrs}, 7), ""},
		"larger than veth's":       {mtuFits(&netlink.Veth{LinkAttrs: attrs}, 9000, four), `give the main plugin "mtu": 9000`},
		"smaller than veth's":      {mtuFits(&netlink.Veth{LinkAttrs: attrs}, 1400, four), ""},
		"larger than an adapter's": {mtuFits(&netlink.Device{LinkAttrs: attrs}, 9000, four), ""},
		"too small for IPv6":       {mtuFits(&netlink.Device{LinkAttrs: attrs}, 1279, six), "take 2001:db8::7 off eth0"},
		"small for IPv4":           {mtuFits(&netlink.Device{LinkAttrs: attrs}, 1279, four), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want == "" && c.err != nil || c.want != "" && (c.err == nil || !strings.Contains(c.err.Error(), c.want)) {
				t.Errorf("%v, want %q", c.err, c.want)
			}
			if _, coded := c.err.(*types.Error); c.want != "" && !coded { //nolint:errorlint // nothing wraps it here
				t.Errorf("%v has no code of CNI", c.err)
			}
		})
	}
}
