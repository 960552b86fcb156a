package intercept

import (
	"net"
	"sync"
	"sync/atomic"
)

// Proxy passes TCP connections on and can keep back either direction, or cut them.
type Proxy struct {
	listener net.Listener
	target   string

	keepRequests, keepAnswers atomic.Bool
	kept                      atomic.Int64

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
	p := &Proxy{listener: l, target: target, conns: map[net.Conn]struct{}{}, accepting: make(chan struct{})}
	go p.accept()
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// KeepRequests keeps back what clients send; the server does not see it, ever.
func (p *Proxy) KeepRequests(on bool) { p.kept.Store(0); p.keepRequests.Store(on) }

// KeepAnswers keeps back what the server sends.
func (p *Proxy) KeepAnswers(on bool) { p.kept.Store(0); p.keepAnswers.Store(on) }

// Kept is how many bytes were kept back since the last change.
func (p *Proxy) Kept() int64 { return p.kept.Load() }

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
	p.Reset()
	p.passing.Wait()
}

func (p *Proxy) accept() {
	defer close(p.accepting)
	for {
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
		p.passing.Go(func() { p.pass(s, c, &p.keepRequests) })
		p.passing.Go(func() { p.pass(c, s, &p.keepAnswers) })
	}
}

// pass copies one direction; its end is the end of both.
func (p *Proxy) pass(to, from net.Conn, keep *atomic.Bool) {
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
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
