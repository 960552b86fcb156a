package neighbour

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/bcsnet/bcsnet/test/lan"
)

// TestSenderOfALinkThatHasGone fails: the pod that is announced has ended.
func TestSenderOfALinkThatHasGone(t *testing.T) {
	h := lan.New(t).Attached(t)
	messages := must(Announcements(netip.MustParseAddr("192.0.2.7"), h.MAC(t, "eth0")))
	var sender *Sender
	h.Do(t, func() error {
		i, err := net.InterfaceByName("eth0")
		if err == nil {
			sender, err = OpenSender(i)
		}
		return err
	})
	t.Cleanup(func() { _ = sender.File().Close() })
	if err := sender.Send(messages); err != nil {
		t.Fatal(err)
	}
	h.Remove(t, "eth0")
	if err := sender.Send(messages); !errors.Is(err, unix.ENXIO) && !errors.Is(err, unix.ENODEV) {
		t.Errorf("Send = %v, want ENXIO or ENODEV", err)
	}
}

// TestMACOfASender has a link whose MAC somebody changes, as a plugin that comes later in the chain does: what is said
// from then on is said of the new one.
func TestMACOfASender(t *testing.T) {
	h := lan.New(t).Attached(t)
	var sender *Sender
	h.Do(t, func() error {
		i, err := net.InterfaceByName("eth0")
		if err == nil {
			sender, err = OpenSender(i)
		}
		return err
	})
	t.Cleanup(func() { _ = sender.File().Close() })
	if got := must(sender.MAC()); got.String() != h.MAC(t, "eth0").String() {
		t.Errorf("the MAC is %s", got)
	}
	later := net.HardwareAddr{2, 0, 0, 0, 0, 0x17}
	h.Do(t, func() error {
		l, err := netlink.LinkByName("eth0")
		if err == nil {
			err = netlink.LinkSetHardwareAddr(l, later)
		}
		return err
	})
	if got := must(sender.MAC()); got.String() != later.String() {
		t.Errorf("the MAC is %s, want %s", got, later)
	}
	h.Remove(t, "eth0")
	if mac, err := sender.MAC(); !errors.Is(err, unix.ENODEV) {
		t.Errorf("of a link that has gone: %s, %v", mac, err)
	}
}
