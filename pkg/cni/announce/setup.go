package announce

import (
	"bytes"
	"errors"
	"fmt"
	"net"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/bcsnet/bcsnet/pkg/cni/attach"
)

// minMTU6 is the smallest MTU of IPv6. Below it, Linux removes all IPv6 addresses from an interface.
const minMTU6 = 1280

// setUp sets the pool's MTU on a link and, if the configuration asks for it, the address's MAC. It returns the link as
// it is afterwards.
func (c *Config) setUp(l netlink.Link, x *attach.Attachment, have *attached) (netlink.Link, error) {
	if err := vlanFits(l, x.VLAN); err != nil {
		return nil, err
	}
	if x.MTU != 0 && x.MTU != l.Attrs().MTU {
		if err := mtuFits(l, x.MTU, have); err != nil {
			return nil, err
		}
		if err := netlink.LinkSetMTU(l, x.MTU); err != nil {
			return nil, fmt.Errorf("set the MTU %d of pool %s on a link of type %s, which has %d: %w", x.MTU, x.Pool,
				l.Type(), l.Attrs().MTU, err)
		}
	}
	mac, err := x.HardwareAddr()
	if err != nil {
		return nil, err
	}
	if c.MAC && mac != nil && !bytes.Equal(mac, l.Attrs().HardwareAddr) {
		if err := macFits(l); err != nil {
			return nil, err
		}
		if err := setMAC(l, mac); err != nil {
			return nil, err
		}
	}
	return netlink.LinkByIndex(l.Attrs().Index)
}

// vlanFits returns an error if a link is in another VLAN than the pool's. Only VLAN links show their VLAN.
func vlanFits(l netlink.Link, vlan int) error {
	if v, is := l.(*netlink.Vlan); is && vlan != 0 && v.VlanId != vlan {
		return invalid("%s is in VLAN %d, and its address is of a pool in VLAN %d: the conflist's vlanId and the "+
			"pool's vlan differ", v.Name, v.VlanId, vlan)
	}
	return nil
}

// mtuFits returns an error for an MTU that the link would accept, but that would lose packets or addresses.
func mtuFits(l netlink.Link, mtu int, have *attached) error {
	// Only this end of the pair would change: the other end drops larger packets.
	if l.Type() == "veth" && mtu > l.Attrs().MTU {
		return invalid("the pool's mtu %d is more than the %d that the main plugin made %s with: give the main plugin "+
			"\"mtu\": %d", mtu, l.Attrs().MTU, l.Attrs().Name, mtu)
	}
	for _, ip := range have.ips {
		if ip.addr.Is6() && mtu < minMTU6 {
			return invalid("the pool's mtu %d is less than IPv6 has (%d): Linux would take %s off %s", mtu, minMTU6,
				ip.addr, l.Attrs().Name)
		}
	}
	return nil
}

// macFits returns an error for a link whose MAC is not its own.
func macFits(l netlink.Link) error {
	switch l.Type() {
	case "ipvlan", "ipvtap":
		return types.NewError(types.ErrUnsupportedField,
			fmt.Sprintf("\"mac\": true cannot be followed on %s, of type %s: all links of this type have the MAC of "+
				"their master", l.Attrs().Name, l.Type()),
			"leave \"mac\" out, or use macvlan")
	default:
		return nil
	}
}

func setMAC(l netlink.Link, mac net.HardwareAddr) error {
	err := netlink.LinkSetHardwareAddr(l, mac)
	switch {
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPERM):
		return types.NewError(types.ErrUnsupportedField,
			fmt.Sprintf("\"mac\": true cannot be followed on %s: its driver does not let the MAC change while the "+
				"link is up", l.Attrs().Name), err.Error())
	case err != nil:
		return fmt.Errorf("set the MAC %s: %w", mac, err)
	}
	return nil
}
