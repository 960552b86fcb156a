package ipam

import (
	"errors"

	"github.com/vishvananda/netlink"

	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
)

// linkVLAN returns the VLAN of a link of this node: that of a VLAN link, or the one in its name, as in eth0.100.
func linkVLAN(name string) (int, error) {
	l, err := netlink.LinkByName(name)
	var missing netlink.LinkNotFoundError
	if err != nil && !errors.As(err, &missing) {
		return 0, err
	}
	if v, is := l.(*netlink.Vlan); is {
		return v.VlanId, nil
	}
	return netconf.VLANOfName(name), nil
}
