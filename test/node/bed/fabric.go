//go:build linux

package bed

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// bridgeName is the link of the fabric that nodes and pods are on.
const bridgeName = "fab0"

// network4 and network6 are the addresses of the fabric, with those of its bridge.
func network4() netip.Prefix { return netip.MustParsePrefix("192.168.77.1/24") }
func network6() netip.Prefix { return netip.MustParsePrefix("fd00:77::1/64") }

// numbered returns the network's prefix with the address that has the number as its last byte.
func numbered(network netip.Prefix, number byte) netip.Prefix {
	bytes := network.Addr().AsSlice()
	bytes[len(bytes)-1] = number
	addr, _ := netip.AddrFromSlice(bytes)
	return netip.PrefixFrom(addr, network.Bits())
}

// makeFabric makes the bridge in the network namespace of this process.
func makeFabric() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return err
	}
	bridge := &netlink.Bridge{LinkAttrs: attributes(bridgeName)}
	bridge.HardwareAddr = mac(1)
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("make the bridge %s: %w", bridgeName, err)
	}
	return configure(bridge, network4(), network6())
}

// plug makes an uplink for the node whose process of ID 1 is pid here, and leaves eth0 in the node's namespace.
func plug(name string, pid int) error {
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return err
	}
	port := &netlink.Veth{LinkAttrs: attributes(name), PeerName: uplink, PeerNamespace: netlink.NsPid(pid)}
	port.MasterIndex = bridge.Attrs().Index
	if err := netlink.LinkAdd(port); err != nil {
		return fmt.Errorf("make the uplink of %s: %w", name, err)
	}
	return netlink.LinkSetUp(port)
}

// unplug removes what is left of a node's uplink: the kernel takes its namespace apart in its own time.
func unplug(name string) error {
	port, err := netlink.LinkByName(name)
	if _, gone := err.(netlink.LinkNotFoundError); gone { //nolint:errorlint // netlink returns it bare
		return nil
	}
	if err != nil {
		return err
	}
	return netlink.LinkDel(port)
}

// configure brings a link up with addresses that can be used at once: nobody else has them.
func configure(link netlink.Link, addrs ...netip.Prefix) error {
	for _, addr := range addrs {
		err := netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(addr), Flags: unix.IFA_F_NODAD})
		if err != nil {
			return fmt.Errorf("add %s to %s: %w", addr, link.Attrs().Name, err)
		}
	}
	return netlink.LinkSetUp(link)
}

func attributes(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	return a
}

// mac returns the MAC of the fabric or of a node.
func mac(number byte) net.HardwareAddr { return net.HardwareAddr{0x02, 0, 0xc0, 0xa8, 0x4d, number} }

func ipNet(p netip.Prefix) *net.IPNet {
	//nolint:forbidigo // netlink wants it
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
