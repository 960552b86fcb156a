package sim_test

import (
	"context"
	"net"
	"strings"
	"sync"
)

// pipes is a listener without a network: whoever dials it gets one end of a pipe.
type pipes struct {
	come   chan net.Conn
	closed chan struct{}
	once   sync.Once
	mu     sync.Mutex
	all    []net.Conn
}

func newPipes() *pipes { return &pipes{come: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.come <- ours:
		p.mu.Lock()
		p.all = append(p.all, ours)
		p.mu.Unlock()
		return theirs, nil
	case <-p.closed:
		return nil, errRefused
	}
}

// Accept waits for the next caller.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.come:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener; connections stay.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// cut closes the connections, too, as the end of a process does.
func (p *pipes) cut() {
	_ = p.Close() // it cannot fail
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.all {
		_ = c.Close() // it is cut
	}
	p.all = nil
}

// Addr is a name.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "replica", Net: "pipe"} }

// dial connects to a replica by its name, or by the address that it tells others.
func (f *fixture) dial(_ context.Context, _, address string) (net.Conn, error) {
	name, _, _ := strings.Cut(address, ":")
	for _, r := range f.replicas {
		if r.name == name || r.address() == address {
			if p := r.listener(); p != nil {
				return p.dial()
			}
		}
	}
	return nil, errRefused
}
