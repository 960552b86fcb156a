package port

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// pages serves pages by a listener until the test ends, and returns where.
func pages(t *testing.T, h http.Handler) string {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	server, bounded := Pages(inner, h, slog.New(slog.DiscardHandler))
	ended.Go(func() {
		if err := server.Serve(bounded); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		_ = server.Close() // always nil here
		ended.Wait()
	})
	return inner.Addr().String()
}

// dial connects to a port from an address of this machine.
func dial(t *testing.T, at, source string) net.Conn {
	t.Helper()
	d := &net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(source), 0))}
	c, err := d.DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the server may have closed it
	return c
}

// isOpen reports whether the other end of a connection that is not read has kept it.
func isOpen(c net.Conn) bool {
	if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return false
	}
	_, err := io.Copy(io.Discard, c)
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// fetch reads a page from an address of this machine on a connection of its own.
func fetch(t *testing.T, at, source string) (string, error) {
	t.Helper()
	c := dial(t, at, source)
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		return "", err
	}
	text, err := io.ReadAll(c)
	return string(text), err
}

// However many readers ask for a page and do not read it, few texts of it are kept, and who reads it gets it.
func TestSlowReaders(t *testing.T) {
	var made, asked atomic.Int64
	large := strings.Repeat("x", 4<<20)
	page := NewPage(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		made.Add(1)
		_, _ = io.WriteString(w, large) // into memory
	}), func(*http.Request) string { return "" })
	at := pages(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		page.ServeHTTP(w, r)
	}))
	for i := range ofSource {
		c := dial(t, at, "127.0.0.2")
		if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		controlplane.Eventually(t, func() error {
			if n := asked.Load(); n <= int64(i) {
				return fmt.Errorf("%d have asked", n)
			}
			return nil
		})
	}
	text, err := fetch(t, at, "127.0.0.3")
	if err != nil || !strings.HasSuffix(text, large) || !strings.HasPrefix(text, "HTTP/1.1 200") {
		t.Errorf("%v: %d bytes: %.40s", err, len(text), text)
	}
	if n := made.Load(); n > copies {
		t.Errorf("%d texts are made for readers who do not read", n)
	}
	page.turn <- struct{}{}
	n := len(page.by[""])
	<-page.turn
	if n > copies {
		t.Errorf("%d texts are kept", n)
	}
}

// A reader gets a text that was begun after the request came, if nobody is slow.
func TestPageIsFresh(t *testing.T) {
	var made atomic.Int64
	page := NewPage(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, "text ", made.Add(1))
	}), func(*http.Request) string { return "" })
	at := pages(t, page)
	for i := 1; i < 3*copies; i++ {
		text, err := fetch(t, at, "127.0.0.3")
		if want := fmt.Sprint("text ", i); err != nil || !strings.HasSuffix(text, want) ||
			!strings.HasPrefix(text, "HTTP/1.1 202") {
			t.Errorf("%v: %q, want %q", err, text, want)
		}
	}
	controlplane.Eventually(t, func() error {
		page.turn <- struct{}{}
		defer func() { <-page.turn }()
		if n := len(page.by[""]); n > 0 {
			return fmt.Errorf("%d texts are kept that nobody reads", n)
		}
		return nil
	})
}

// However a caller is slow, one address keeps few connections, all together keep few, and others are answered.
func TestConnectionsOfPages(t *testing.T) {
	for name, say := range map[string]string{
		"idle": "", "header": "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", "answered": "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			at := pages(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
			open := func(sources ...string) (n int) {
				var conns []net.Conn
				for i := range 2 * ofSource * len(sources) {
					c := dial(t, at, sources[i%len(sources)])
					_, _ = io.WriteString(c, say) // it may be closed already
					conns = append(conns, c)
				}
				if text, err := fetch(t, at, "127.0.0.3"); err != nil || !strings.HasSuffix(text, "ok") {
					t.Errorf("%v: %q", err, text)
				}
				for _, c := range conns {
					if isOpen(c) {
						n++
					}
				}
				return n
			}
			if n := open("127.0.0.2"); n > ofSource {
				t.Errorf("%d connections of one address are kept", n)
			}
			var many []string
			for i := range 2 * all / ofSource {
				many = append(many, fmt.Sprintf("127.0.1.%d", i+1))
			}
			if n := open(many...); n > all {
				t.Errorf("%d connections are kept", n)
			}
		})
	}
}
