package serving

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

const (
	// mostOfSource is how many connections of unknown callers one address may have, and mostStrangers how many all.
	mostOfSource, mostStrangers = 1024, 8192
	// sourceBits is the prefix by which addresses of IPv6 are one: a machine has a whole one of these.
	sourceBits = 64
)

// Strangers bounds the connections whose callers are not known, or not yet. A new one is always taken, since whoever is
// known comes by such a one: what has been there longest is closed for it. Where one address has too many it is one of
// that address, and where all have, one of the address that has most.
type Strangers struct {
	// Log names an address whose connections are closed, once a minute; nil for no log.
	Log *slog.Logger
	// CountLoopback counts this machine, too. It is for tests.
	CountLoopback bool

	seldom rate.Sometimes
	mu     sync.Mutex
	all    int
	by     map[netip.Prefix]*source
	// largest has the sources, the one with most connections first.
	largest sources
}

// source is an address with its connections, the oldest first.
type source struct {
	at    netip.Prefix
	conns *list.List // of *peeked
	place int        // in the heap
}

// sourceOf returns by what a connection is counted; false for one that is not.
func (s *Strangers) sourceOf(c net.Conn) (netip.Prefix, bool) {
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

// add counts a connection as a stranger's.
func (s *Strangers) add(p *peeked) {
	at, counts := s.sourceOf(p)
	if !counts {
		return
	}
	s.mu.Lock()
	if p.closed || p.stranger != nil {
		s.mu.Unlock()
		return
	}
	of := s.by[at]
	var goes *peeked
	switch {
	case of != nil && of.conns.Len() >= mostOfSource:
		goes = of.oldest()
	case s.all >= mostStrangers:
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
	p.source, p.stranger = of, of.conns.PushBack(p)
	s.all++
	heap.Fix(&s.largest, of.place)
	s.mu.Unlock()
	if goes != nil {
		s.end(goes)
	}
}

// end closes a connection that has to go for another one.
func (s *Strangers) end(p *peeked) {
	_ = p.Conn.Close() // nobody is known to wait for it
	if s.Log != nil {
		s.seldom.Do(func() {
			s.Log.Warn("connections of unknown callers are closed: there are too many", "address", p.RemoteAddr().String(),
				"most_of_address", mostOfSource, "most", mostStrangers)
		})
	}
}

// forget no longer counts a connection: its caller is known, or it has ended.
func (s *Strangers) forget(p *peeked, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(p)
	p.closed = p.closed || ended
}

func (s *Strangers) remove(p *peeked) {
	of := p.source
	if p.stranger == nil {
		return
	}
	of.conns.Remove(p.stranger)
	p.source, p.stranger = nil, nil
	s.all--
	if of.conns.Len() > 0 {
		heap.Fix(&s.largest, of.place)
		return
	}
	heap.Remove(&s.largest, of.place)
	delete(s.by, of.at)
}

func (s *source) oldest() *peeked { return s.conns.Front().Value.(*peeked) }

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

// Pop takes the last source off.
func (s *sources) Pop() any {
	last := len(*s) - 1
	of := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return of
}
