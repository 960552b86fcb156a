package neighbour

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/lan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t *testing.T, h *lan.Host) (c *Conn) {
	t.Helper()
	h.Do(t, func() error {
		i, err := net.InterfaceByName("eth0")
		if err == nil {
			c, err = Listen(i)
		}
		return err
	})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestAskReadsWhatCameInTime has claims that wait in the sockets while the caller's time ends: they count. A busy node
// is where an address is taken twice.
func TestAskReadsWhatCameInTime(t *testing.T) {
	l := lan.New(t)
	us, them := l.Attached(t), l.Attached(t)
	here, there := listen(t, us), listen(t, them)
	over, stop := context.WithCancel(t.Context())
	stop()
	for _, text := range []string{"192.0.2.7", "2001:db8::7"} {
		addr := netip.MustParseAddr(text)
		controlplane.Eventually(t, func() error {
			if err := there.Send(t.Context(), must(Announcements(addr, them.MAC(t, "eth0")))); err != nil {
				return err
			}
			got, err := here.Ask(over, nil, []netip.Addr{addr})
			if err == nil && len(got) != 1 {
				err = fmt.Errorf("%s was announced: Ask = %v", addr, got)
			}
			return err
		})
	}
}

// TestAskEndsEarly has every address claimed: nothing is waited for.
func TestAskEndsEarly(t *testing.T) {
	l := lan.New(t)
	us, them := l.Attached(t, "192.0.2.1/24"), l.Attached(t, "192.0.2.7/24")
	conn := listen(t, us)
	addr := netip.MustParseAddr("192.0.2.7")
	query := must(Query(addr, netip.MustParseAddr("192.0.2.1"), us.MAC(t, "eth0")))
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for range 2 { // a conn can ask more than once
		got, err := conn.Ask(ctx, []Message{query}, []netip.Addr{addr}, time.Hour)
		if err != nil || len(got) != 1 || got[0].MAC.String() != them.MAC(t, "eth0").String() {
			t.Fatalf("Ask = %v, %v, want the MAC %s", got, err, them.MAC(t, "eth0"))
		}
	}
}

// TestAskOnALinkThatGoesDown has an error instead of no claims.
func TestAskOnALinkThatGoesDown(t *testing.T) {
	l := lan.New(t)
	us := l.Attached(t)
	conn := listen(t, us)
	us.Down(t, "eth0")
	addr := netip.MustParseAddr("192.0.2.7")
	if _, err := conn.Ask(t.Context(), []Message{must(Probe(addr, us.MAC(t, "eth0")))}, []netip.Addr{addr}); err == nil {
		t.Error("nobody was asked, and there is no error")
	}
}

// TestEachAnnouncement sends one of the announcements alone, as there are systems that take only requests, or only
// replies. Linux takes each, also from a peer whose entry it wrote down a moment ago.
func TestEachAnnouncement(t *testing.T) {
	l := lan.New(t)
	for name, c := range map[string]struct {
		peer, addr, prefix string
		which              int
	}{
		"request":       {"192.0.2.1", "192.0.2.7", "/24", 0},
		"reply":         {"192.0.2.1", "192.0.2.7", "/24", 1},
		"advertisement": {"2001:db8::1", "2001:db8::7", "/64", 0},
	} {
		t.Run(name, func(t *testing.T) {
			peer, old, next := l.Attached(t, c.peer+c.prefix), l.Attached(t, c.addr+c.prefix), l.Attached(t)
			if err := lan.Reach(t, peer, old, c.addr); err != nil {
				t.Fatal(err)
			}
			old.Down(t, "eth0")
			message := must(Announcements(netip.MustParseAddr(c.addr), next.MAC(t, "eth0")))[c.which]
			if err := listen(t, next).Send(t.Context(), []Message{message}); err != nil {
				t.Fatal(err)
			}
			controlplane.Eventually(t, func() error {
				if got, want := peer.Neighbour(t, c.addr).String(), next.MAC(t, "eth0").String(); got != want {
					return fmt.Errorf("the peer has %s, want %s", got, want)
				}
				return nil
			})
			peer.Down(t, "eth0")
		})
	}
}
