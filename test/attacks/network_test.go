package attacks_test

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/bcsnet/bcsnet/test/inprocess"
	"github.com/bcsnet/bcsnet/test/lan"
)

// doors is a listener that accepts what several do, also some that come later.
type doors struct {
	net.Listener
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// newDoors returns doors with one of this machine.
func newDoors() (*doors, error) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &doors{Listener: first, accepted: make(chan net.Conn), closed: make(chan struct{})}
	d.open(first)
	return d, nil
}

// open accepts what one more listener does, until that is closed.
func (d *doors) open(l net.Listener) {
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			select {
			case d.accepted <- c:
			case <-d.closed:
				_ = c.Close()
				return
			}
		}
	}()
}

func (d *doors) Accept() (net.Conn, error) {
	select {
	case c := <-d.accepted:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *doors) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.Listener.Close()
}

// way is how requests by plain HTTP come from another machine.
type way struct {
	// source is the address that they come from.
	source string
	// dial connects to a replica; nil for the way by a proxy of this machine.
	dial func(context.Context, *inprocess.Controller) (net.Conn, error)
}

// bring makes a request one that comes this way.
func (by way) bring(a ask) ask {
	if by.dial == nil {
		return a.elsewhere(by.source)
	}
	a.plain, a.dial = true, by.dial
	return a
}

// byEachWay tries an attack by each way from another machine. Only by the first does a header show that it is none of
// this machine.
func byEachWay(try func(*testing.T, *world, way)) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Run("by_a_proxy", func(t *testing.T) { try(t, w, way{source: "127.0.0.7"}) })
		t.Run("over_a_network", func(t *testing.T) { try(t, w, newNetwork(t).there()) })
		t.Run("led_to_a_loopback_address", func(t *testing.T) { try(t, w, newNetwork(t).led()) })
	}
}

// The addresses of the controllers' machine, and of another one.
const (
	theMachine = "192.0.2.1"
	another    = "192.0.2.7"
	ledFrom    = "192.0.2.8"
)

// network is one that the controllers' machine and another one are on.
type network struct {
	machine, other *lan.Host
	port           map[*inprocess.Controller]uint16
}

// newNetwork opens doors of the controllers to a network of the test's own.
func newNetwork(t *testing.T) *network {
	t.Helper()
	l := lan.New(t)
	n := &network{
		machine: l.Attached(t, theMachine+"/24", ledFrom+"/24"), other: l.Attached(t, another+"/24"),
		port: map[*inprocess.Controller]uint16{},
	}
	n.machine.Do(t, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	})
	for c, d := range shared.doors {
		n.machine.Do(t, func() error {
			listener, err := net.Listen("tcp", "0.0.0.0:0")
			if err != nil {
				return err
			}
			t.Cleanup(func() { _ = listener.Close() })
			n.port[c] = netip.MustParseAddrPort(listener.Addr().String()).Port()
			d.open(listener)
			return nil
		})
	}
	return n
}

// there is the way of the other machine, to the address that the controllers' machine has on the network.
func (n *network) there() way {
	return way{another, n.dial(n.other, "", theMachine)}
}

// led is the way to a loopback address from another one, as where a rule of the machine's packet filter leads
// connections there.
func (n *network) led() way {
	return way{ledFrom, n.dial(n.machine, ledFrom, "127.0.0.1")}
}

func (n *network) dial(host *lan.Host, source, to string) func(context.Context, *inprocess.Controller) (net.Conn, error) {
	return func(ctx context.Context, c *inprocess.Controller) (conn net.Conn, err error) {
		at := netip.AddrPortFrom(netip.MustParseAddr(to), n.port[c]).String()
		failed := host.Try(func() error {
			conn, err = from(source)(ctx, "tcp", at)
			return err
		})
		return conn, failed
	}
}
