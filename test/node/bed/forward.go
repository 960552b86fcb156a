//go:build linux

package bed

import (
	"errors"
	"io"
	"net"
	"sync"
)

// Forward makes an address of the fabric reachable from the machine, at a port of its loopback that it returns. It goes
// on until this process ends.
func (b *Bed) Forward(address string) (string, error) {
	listener, err := b.OnMachine()
	if err != nil {
		return "", err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = join(conn, address) }()
		}
	}()
	return listener.Addr().String(), nil
}

// join copies between a connection and one that it makes to an address, until both sides have ended theirs.
func join(conn net.Conn, address string) error {
	defer conn.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer to.Close()
	errs := make([]error, 2)
	var ways sync.WaitGroup
	for i, way := range [][2]net.Conn{{conn, to}, {to, conn}} {
		ways.Go(func() {
			_, errs[i] = io.Copy(way[0], way[1])
			// The other side reads to the end of what was sent.
			if tcp, ok := way[0].(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
		})
	}
	ways.Wait()
	return errors.Join(errs...)
}
