package port

import (
	"container/heap"
	"container/list"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// sourceBits is the prefix length by which IPv6 addresses count as one source: a machine has a whole prefix of this
// length.
const sourceBits = 64

// Connections limits the connections of a port whose callers are not known. A new connection is always accepted, and
// the oldest one is closed for it: the oldest of the same address if that address has too many, else the oldest of the
// address that has most.
type Connections struct {
	// OfSource is the limit of connections from one address, and All that of all addresses together.
	OfSource, All int
	// Log names an address whose connections are closed, once a minute; nil for no log.
	Log *slog.Logger
	// CountLoopback also counts the connections of this machine.
	CountLoopback bool

	seldom rate.Sometimes
	mu     sync.Mutex
	all    int
	by     map[netip.Prefix]*source
	// largest has the sources as a heap, with most connections first.
	largest sources
}

// source is an address with its connections, the oldest first.
type source struct {
	at    netip.Prefix
	conns *list.List // of *Conn
	place int        // in the heap
}

// sourceOf returns the address under which a connection is counted; false if it is not counted.
func (s *Connections) sourceOf(c net.Conn) (netip.Prefix, bool) {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	a := at.Addr().Unmap().WithZone("")
	if err != nil || a.IsLoopback() && !s.CountLoopback {
		return netip.Prefix{}, false
	}
	bits := a.BitLen()
	if a.Is6() {
		bits = sourceBits
	}
	p, err := a.Prefix(bits)
	return p, err == nil
}

// Take counts an accepted connection until it is closed or its caller is known.
func (s *Connections) Take(c net.Conn) *Conn {
	taken := &Conn{Conn: c, of: s}
	s.add(taken)
	return taken
}

// add counts a connection.
func (s *Connections) add(p *Conn) {
	at, counts := s.sourceOf(p)
	if !counts {
		return
	}
	s.mu.Lock()
	if p.closed || p.place != nil {
		s.mu.Unlock()
		return
	}
	of := s.by[at]
	var goes *Conn
	switch {
	case of != nil && of.conns.Len() >= s.OfSource:
		goes = of.oldest()
	case s.all >= s.All:
		goes = s.largest[0].oldest()
	}
	if goes != nil {
		s.remove(goes)
		goes.closed = true
	}
	if of = s.by[at]; of == nil {
		of = &source{at: at, conns: list.New()}
		if s.by == nil {
			s.by = map[netip.Prefix]*source{}
			s.seldom.Interval = time.Minute
		}
		s.by[at] = of
		heap.Push(&s.largest, of)
	}
	p.source, p.place = of, of.conns.PushBack(p)
	s.all++
	heap.Fix(&s.largest, of.place)
	s.mu.Unlock()
	if goes != nil {
		s.end(goes)
	}
}

// end closes a connection to make room for another one.
func (s *Connections) end(p *Conn) {
	_ = p.Conn.Close() // nobody is known to wait for it
	if s.Log != nil {
		s.seldom.Do(func() {
			s.Log.Warn("connections of unknown callers are closed: there are too many", "address",
				p.RemoteAddr().String(), "most_of_address", s.OfSource, "most", s.All)
		})
	}
}

// forget stops counting a connection: its caller is known, or it has ended.
func (s *Connections) forget(p *Conn, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(p)
	p.closed = p.closed || ended
}

func (s *Connections) remove(p *Conn) {
	of := p.source
	if p.place == nil {
		return
	}
	of.conns.Remove(p.place)
	p.source, p.place = nil, nil
	s.all--
	if of.conns.Len() > 0 {
		heap.Fix(&s.largest, of.place)
		return
	}
	heap.Remove(&s.largest, of.place)
	delete(s.by, of.at)
}

func (s *source) oldest() *Conn { return s.conns.Front().Value.(*Conn) }

// sources is a heap.
type sources []*source

func (s sources) Len() int           { return len(s) }
func (s sources) Less(i, j int) bool { return s[i].conns.Len() > s[j].conns.Len() }
func (s sources) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

// Push appends a source.
func (s *sources) Push(x any) {
	of := x.(*source)
	of.place = len(*s)
	*s = append(*s, of)
}

// Pop removes and returns the last source.
func (s *sources) Pop() any {
	last := len(*s) - 1
	of := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return of
}
