package port

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
)

const mostOfSource, mostStrangers = 1024, 8192

// come is a connection from an address, which knows whether it was closed.
type come struct {
	net.Conn
	from   string
	closed bool
}

func (c *come) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.from)) }

func (c *come) Close() error {
	c.closed = true
	return nil
}

// arrivals is a number of connections from each of some addresses, in turn.
func arrivals(s *Connections, n int, from ...string) (all []*Conn) {
	for range n {
		for _, at := range from {
			all = append(all, s.Take(&come{from: at}))
		}
	}
	return all
}

func closed(all []*Conn) (n int) {
	for _, p := range all {
		if p.Conn.(*come).closed {
			n++
		}
	}
	return n
}

// An address has so many connections of unknown callers; for one more the oldest goes. Those of known callers and of
// this machine do not count, and one whose caller is known no more does again.
func TestStrangersOfAnAddress(t *testing.T) {
	t.Parallel()
	s := &Connections{OfSource: mostOfSource, All: mostStrangers}
	first := arrivals(s, mostOfSource, "192.0.2.7:1")
	first[0].SetKnown(true)
	more := arrivals(s, 1, "192.0.2.7:2")
	if n := closed(slices.Concat(first, more)); n != 0 {
		t.Errorf("%d are closed where one is known", n)
	}
	more = append(more, arrivals(s, 10, "[::ffff:192.0.2.7]:1")...)
	if n := closed(first[1:11]); n != 10 || closed(first) != 10 || closed(more) != 0 {
		t.Errorf("of the oldest %d are closed, of all %d", n, closed(first))
	}
	first[0].SetKnown(false)
	if first[0].Conn.(*come).closed || closed(first) != 11 {
		t.Error("who is known no more does not count, or is closed first")
	}
	for _, p := range slices.Concat(first, more) {
		_ = p.Close() // always nil
		p.SetKnown(false)
	}
	if s.all != 0 || len(s.by) != 0 || len(s.largest) != 0 {
		t.Errorf("%d are counted after their end", s.all)
	}
	if own := arrivals(s, 2*mostOfSource, "127.0.0.1:1", "[::1]:1"); closed(own) != 0 || s.all != 0 {
		t.Error("this machine is counted")
	}
	network := arrivals(s, mostOfSource, "[2001:db8::1]:1", "[2001:db8::2]:1")
	if n := closed(network); n != mostOfSource {
		t.Errorf("of a network of IPv6 %d are closed", n)
	}
}

// Where all have too many, one of the address that has most goes, and never one that an address has alone.
func TestStrangersOfAll(t *testing.T) {
	t.Parallel()
	s := &Connections{OfSource: mostOfSource, All: mostStrangers}
	alone := arrivals(s, 1, "192.0.2.7:1")
	var from []string
	for i := range 2 * mostStrangers / mostOfSource {
		from = append(from, fmt.Sprintf("198.51.100.%d:1", i))
	}
	many := arrivals(s, mostOfSource, from...)
	late := arrivals(s, 1, "192.0.2.8:1")
	if closed(alone)+closed(late) != 0 || s.all != mostStrangers || closed(many) != len(many)-mostStrangers+2 {
		t.Errorf("%d are counted; closed: %d of the two, %d of the many", s.all, closed(alone)+closed(late), closed(many))
	}
	known := arrivals(s, 1, "192.0.2.9:1")
	known[0].SetKnown(true)
	if arrivals(s, mostOfSource, from...); closed(known) != 0 {
		t.Error("a known caller is shut out")
	}
}
