package serving

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/serving/port"
)

// piped is a listener with one connection.
type piped struct {
	net.Listener
	come chan net.Conn
}

func (p piped) Accept() (net.Conn, error) {
	if c, ok := <-p.come; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p piped) Close() error { return nil }

// FuzzFirstOctet: a connection that begins as none of TLS is handed on with all that came by it, in order; one that
// begins as TLS is never handed on as a plain one.
func FuzzFirstOctet(f *testing.F) {
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x00\x05hello", "\x16", "\x00", "PRI * HTTP/2.0\r\n\r\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) == 0 {
			return
		}
		here, there := net.Pipe()
		come := make(chan net.Conn, 1)
		come <- there
		close(come)
		l := Listen(piped{come: come}, &tls.Config{MinVersion: tls.VersionTLS12}, &port.Connections{OfSource: 1024, All: 8192})
		accepted := make(chan struct{})
		go func() {
			_, _ = here.Write(text) // the other side may close first
			<-accepted              // a pipe that is closed takes no deadline
			_ = here.Close()
		}()
		c, err := l.Accept()
		for err != nil { // the other listener's end may come first
			c, err = l.Accept()
		}
		close(accepted)
		if _, secure := c.(*tls.Conn); secure != (text[0] == recordHandshake) {
			t.Fatalf("%q: TLS is %t", text, secure)
		} else if !secure {
			if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%q came as %q, %v", text, got, err)
			}
		}
		_ = c.Close() // it is a pipe
		_ = l.Close() // so is this
	})
}
