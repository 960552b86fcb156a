package intercept

import (
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy passes TCP connections on and can keep back either direction, delay both, hold streams, or cut
// them all.
type Proxy struct {
	listener net.Listener
	target   string

	keepRequests, keepAnswers atomic.Bool
	kept                      atomic.Int64
	delay                     atomic.Int64 // of every read, in nanoseconds
	streams                   *Gate
	held                      atomic.Uint64 // which streams, by the bits of HoldStreams
	closed                    chan struct{}
	closing                   sync.Once // a proxy may be closed again

	mu        sync.Mutex
	conns     map[net.Conn]struct{}
	accepting chan struct{} // closed when no more connections are taken
	passing   sync.WaitGroup
}

// NewProxy listens on a free port of the loopback interface for a target, host:port.
func NewProxy(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		listener: l, target: target, streams: NewGate(), closed: make(chan struct{}),
		conns: map[net.Conn]struct{}{}, accepting: make(chan struct{}),
	}
	p.streams.Open()
	go p.accept()
	return p, nil
}

// Addr returns the address that the proxy listens on.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// KeepRequests keeps back what clients send; the server does not see it, ever.
func (p *Proxy) KeepRequests(on bool) { p.kept.Store(0); p.keepRequests.Store(on) }

// KeepAnswers keeps back what the server sends.
func (p *Proxy) KeepAnswers(on bool) { p.kept.Store(0); p.keepAnswers.Store(on) }

// Kept returns how many bytes were kept back since the last change.
func (p *Proxy) Kept() int64 { return p.kept.Load() }

// Delay adds a latency to both directions; 0 ends it.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// AllStreams has HoldStreams hold all of them.
const AllStreams = math.MaxUint64

// HoldStreams holds what the server sends on connections whose client has been silent for a while, such as
// the watches of a client that speaks HTTP/1.1, until it is called again. Requests and their answers pass. Of 64
// connections that follow each other each has a bit: a number drawn by lot holds half of the streams, 0 none.
func (p *Proxy) HoldStreams(which uint64) {
	p.held.Store(which)
	p.streams.Open() // those that are not held any more go on
	if which != 0 {
		p.streams.Shut()
	}
}

// silence is the time for which a client says nothing on a connection that counts as a stream: longer than the API
// server takes for an answer.
const silence = 500 * time.Millisecond

// Reset cuts all connections with a TCP reset.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, no orderly end
		}
		_ = c.Close() // whatever it says, it is closed
	}
}

// Close cuts all connections and takes no more: who connects is refused.
func (p *Proxy) Close() {
	_ = p.listener.Close() // ends accept
	<-p.accepting
	p.closing.Do(func() { close(p.closed) })
	p.Reset()
	p.passing.Wait()
}

func (p *Proxy) accept() {
	defer close(p.accepting)
	for number := 0; ; number++ {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = c.Close() // the client sees what the server would have shown it
			continue
		}
		p.mu.Lock()
		p.conns[c], p.conns[s] = struct{}{}, struct{}{}
		p.mu.Unlock()
		spoke := &atomic.Int64{}
		p.passing.Go(func() {
			p.pass(s, c, &p.keepRequests, func() { spoke.Store(time.Now().UnixNano()) })
		})
		p.passing.Go(func() {
			p.pass(c, s, &p.keepAnswers, func() {
				if time.Since(time.Unix(0, spoke.Load())) < silence || p.held.Load()>>(number%64)&1 == 0 {
					return
				}
				open, _ := p.streams.state()
				select {
				case <-open:
				case <-p.closed:
				}
			})
		})
	}
}

// pass copies one direction, and calls read before it passes anything on; its end is the end of both.
func (p *Proxy) pass(to, from net.Conn, keep *atomic.Bool, read func()) {
	defer func() {
		p.mu.Lock()
		delete(p.conns, from)
		p.mu.Unlock()
		_, _ = from.Close(), to.Close() // the other direction may have closed them
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if keep.Load() {
			p.kept.Add(int64(n))
			n = 0
		}
		if n > 0 {
			p.wait()
			read()
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait waits for the latency.
func (p *Proxy) wait() {
	d := p.delay.Load()
	if d == 0 {
		return
	}
	timer := time.NewTimer(time.Duration(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.closed:
	}
}
