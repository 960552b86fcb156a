package serving

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/serving/port"
)

const (
	// recordHandshake is the first octet of every TLS connection. No HTTP request begins with it.
	recordHandshake = 0x16
	// firstByteTime bounds the time until the first octet of a connection.
	firstByteTime = 5 * time.Second
)

// Listen returns a listener that accepts TLS and plain connections from another one: the first octet distinguishes
// them. Connections that send nothing do not block others, and are closed after five seconds. They count as strangers
// until SetKnown is called.
func Listen(inner net.Listener, config *tls.Config, strangers *port.Connections) net.Listener {
	return &listener{
		Listener: inner, config: config, strangers: strangers, come: make(chan arrival), closed: make(chan struct{}),
		quiet: map[net.Conn]struct{}{},
	}
}

type listener struct {
	net.Listener
	config    *tls.Config
	strangers *port.Connections
	come      chan arrival
	closed    chan struct{}
	// begun and ended guard the first Accept and the first Close.
	begun, ended sync.Once
	parts        sync.WaitGroup

	mu    sync.Mutex
	quiet map[net.Conn]struct{} // connections that have sent nothing yet; nil after Close
}

type arrival struct {
	net.Conn
	err error
}

// Accept returns a connection that has sent its first octet, or the error of the inner listener.
func (l *listener) Accept() (net.Conn, error) {
	l.begun.Do(func() { l.parts.Go(l.accept) })
	select {
	case a := <-l.come:
		return a.Conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close closes the inner listener and the connections that have sent nothing yet.
func (l *listener) Close() error {
	err := net.ErrClosed
	l.ended.Do(func() {
		close(l.closed)
		err = l.Listener.Close()
		l.mu.Lock()
		for c := range l.quiet {
			_ = c.Close() // nobody has accepted it
		}
		l.quiet = nil
		l.mu.Unlock()
		l.parts.Wait()
	})
	return err
}

func (l *listener) accept() {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if l.hand(arrival{nil, err}); errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		l.mu.Lock()
		if l.quiet == nil {
			l.mu.Unlock()
			_ = c.Close() // the listener is closed
			return
		}
		p := &peeked{Conn: l.strangers.Take(c)}
		l.quiet[p] = struct{}{}
		l.mu.Unlock()
		l.parts.Go(func() { l.first(p) })
	}
}

// hand passes a connection or an error to Accept, and reports whether Accept took it.
func (l *listener) hand(a arrival) bool {
	select {
	case l.come <- a:
		return true
	case <-l.closed:
		return false
	}
}

// first waits for the first octet of a connection and passes the connection on.
func (l *listener) first(p *peeked) {
	err := p.SetReadDeadline(time.Now().Add(firstByteTime))
	if err == nil {
		_, err = p.Conn.Read(p.octet[:])
	}
	if err == nil {
		err = p.SetReadDeadline(time.Time{})
	}
	l.mu.Lock()
	delete(l.quiet, p)
	l.mu.Unlock()
	if err != nil {
		_ = p.Close() // it sent nothing
		return
	}
	var out net.Conn = p
	if p.octet[0] == recordHandshake {
		out = tls.Server(p, l.config)
	}
	if !l.hand(arrival{out, nil}) {
		_ = p.Close() // nobody accepts it
	}
}

// peeked is a connection whose first octet has already been read.
type peeked struct {
	*port.Conn
	octet [1]byte
	given bool
}

// Read first returns the octet that was already read.
func (p *peeked) Read(b []byte) (int, error) {
	if p.given || len(b) == 0 {
		return p.Conn.Read(b)
	}
	p.given = true
	return copy(b, p.octet[:]), nil
}
