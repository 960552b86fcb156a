package lan

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// LAN is a bridge. Its hosts reach each other over it.
type LAN struct {
	namespace ns.NetNS
	bridge    int
	ports     atomic.Int32
}

// Host is a network namespace. It has a link eth0 to the bridge where Attach made one.
type Host struct {
	namespace ns.NetNS
}

// New makes a bridge. The test is skipped where network namespaces cannot be made.
func New(t testing.TB) *LAN {
	t.Helper()
	l := &LAN{namespace: namespace(t)}
	l.do(t, func() error {
		bridge := &netlink.Bridge{LinkAttrs: attrs("br0")}
		if err := netlink.LinkAdd(bridge); err != nil {
			return fmt.Errorf("make a bridge: %w", err)
		}
		l.bridge = bridge.Index
		if err := netlink.AddrAdd(bridge, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(bridgeAddr(), 32))}); err != nil {
			return fmt.Errorf("give the bridge an address: %w", err)
		}
		return netlink.LinkSetUp(bridge)
	})
	return l
}

// namespace returns a network namespace that ends with the test.
func namespace(t testing.TB) ns.NetNS {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("skipped: network namespaces are made by root alone")
	}
	n, err := ns.TempNetNS()
	if err != nil {
		t.Skipf("skipped: this machine lets no network namespace be made: %v", err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// Host returns a host without a link.
func (l *LAN) Host(t testing.TB) *Host {
	t.Helper()
	return &Host{namespace: namespace(t)}
}

// Attached returns a host whose eth0 is up and has the addresses.
func (l *LAN) Attached(t testing.TB, addrs ...string) *Host {
	t.Helper()
	h := l.Host(t)
	l.Attach(t, h, "eth0")
	h.Up(t, "eth0")
	h.Address(t, "eth0", addrs...)
	return h
}

// Attach makes a link from a host to the bridge. Its end at the host is down, as main plugins leave it to an IPAM
// plugin.
func (l *LAN) Attach(t testing.TB, h *Host, name string) {
	t.Helper()
	l.do(t, func() error {
		port := &netlink.Veth{
			LinkAttrs: attrs(fmt.Sprintf("port%d", l.ports.Add(1))), PeerName: name,
			PeerNamespace: netlink.NsFd(h.namespace.Fd()),
		}
		port.MasterIndex = l.bridge
		if err := netlink.LinkAdd(port); err != nil {
			return fmt.Errorf("make a link to the bridge: %w", err)
		}
		return netlink.LinkSetUp(port)
	})
}

// Isolated makes a link that is up and leads nowhere: its other end is down.
func (h *Host) Isolated(t testing.TB, name string) {
	t.Helper()
	h.Do(t, func() error {
		l := &netlink.Veth{LinkAttrs: attrs(name), PeerName: "nowhere"}
		if err := netlink.LinkAdd(l); err != nil {
			return err
		}
		return netlink.LinkSetUp(l)
	})
}

// Path returns where the namespace is, for programs of this test and those it starts.
func (h *Host) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), h.namespace.Fd())
}

// Up brings a link up and waits until the bridge answers over it: a port forwards a moment after its carrier is there.
func (h *Host) Up(t testing.TB, name string) {
	t.Helper()
	h.Do(t, func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(l)
	})
	h.awaitBridge(t, name)
}

// Address adds addresses, in CIDR notation, without the detection of duplicates: they can be used at once.
func (h *Host) Address(t testing.TB, name string, addrs ...string) {
	t.Helper()
	h.Do(t, func() error {
		l, err := netlink.LinkByName(name)
		for _, addr := range addrs {
			if err == nil {
				err = netlink.AddrAdd(l, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix(addr)),
					Flags: unix.IFA_F_NODAD})
			}
		}
		return err
	})
}

// Down takes a link down.
func (h *Host) Down(t testing.TB, name string) {
	t.Helper()
	h.Do(t, func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkSetDown(l)
	})
}

// Remove removes a link.
func (h *Host) Remove(t testing.TB, name string) {
	t.Helper()
	h.Do(t, func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	})
}

// Link returns a link as it is now.
func (h *Host) Link(t testing.TB, name string) (found netlink.Link) {
	t.Helper()
	h.Do(t, func() (err error) {
		found, err = netlink.LinkByName(name)
		return err
	})
	return found
}

// MAC returns the MAC of a link.
func (h *Host) MAC(t testing.TB, name string) net.HardwareAddr {
	t.Helper()
	return h.Link(t, name).Attrs().HardwareAddr
}

// Do runs a function in the namespace and fails the test with its error.
func (h *Host) Do(t testing.TB, do func() error) {
	t.Helper()
	if err := h.Try(do); err != nil {
		t.Fatal(err)
	}
}

// Try runs a function in the namespace, and returns its error.
func (h *Host) Try(do func() error) error {
	return h.namespace.Do(func(ns.NetNS) error { return do() })
}

func (l *LAN) do(t testing.TB, do func() error) {
	t.Helper()
	(&Host{namespace: l.namespace}).Do(t, do)
}

func attrs(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	return a
}

// ipNet returns a prefix, with the host's bits of its address, in the form of netlink.
func ipNet(p netip.Prefix) *net.IPNet {
	//nolint:forbidigo // netlink wants it
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
