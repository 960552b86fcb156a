package neighbour

import (
	"errors"
	"net"
	"net/netip"
	"testing"

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
