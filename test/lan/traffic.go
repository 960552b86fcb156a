package lan

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// Macvlan gives a host a link that shares eth0 of another one, which stands for the node. The link is down.
func (h *Host) Macvlan(t testing.TB, node *Host, name string) {
	t.Helper()
	node.Do(t, func() error {
		parent, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		shared := &netlink.Macvlan{LinkAttrs: attrs(name), Mode: netlink.MACVLAN_MODE_BRIDGE}
		shared.ParentIndex = parent.Attrs().Index
		shared.Namespace = netlink.NsFd(h.namespace.Fd())
		if err := netlink.LinkAdd(shared); err != nil {
			return fmt.Errorf("make a macvlan link: %w", err)
		}
		return nil
	})
}

// Neighbour returns the MAC that a host's table of neighbours has for an address: nil when it has none.
func (h *Host) Neighbour(t testing.TB, addr string) (mac net.HardwareAddr) {
	t.Helper()
	h.Do(t, func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		entries, err := netlink.NeighList(l.Attrs().Index, 0)
		for i := range entries {
			if entry, is := netip.AddrFromSlice(entries[i].IP); is && entry.Unmap() == netip.MustParseAddr(addr) {
				mac = entries[i].HardwareAddr
			}
		}
		return err
	})
	return mac
}

// Reach sends one datagram from a host to an address that another one has, and returns an error unless it arrives.
func Reach(t testing.TB, from, to *Host, addr string) error {
	t.Helper()
	var there, here *net.UDPConn
	at := netip.AddrPortFrom(netip.MustParseAddr(addr), 7777)
	to.Do(t, func() (err error) {
		there, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		return err
	})
	defer there.Close()
	from.Do(t, func() (err error) {
		here, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(at))
		return err
	})
	defer here.Close()
	if _, err := here.Write([]byte("reached")); err != nil {
		return err
	}
	if err := there.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	text := make([]byte, 64)
	n, err := there.Read(text)
	if err == nil && string(text[:n]) != "reached" {
		err = fmt.Errorf("%s got %q", addr, text[:n])
	}
	return err
}
