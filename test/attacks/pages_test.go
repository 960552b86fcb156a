package attacks_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

const (
	// keptOfAddress is the number of connections of one address that a port with pages keeps, keptOfAll the number of
	// all.
	keptOfAddress, keptOfAll = 64, 512
	// mostHeap is by how much such an attack makes the heap of this process grow, in bytes. It has both ends.
	mostHeap = 64 << 20
)

// pages are attacks on the ports with pages for monitoring and probes, which ask nobody who they are.
func pages() []attack {
	return []attack{
		{"readers_that_do_not_read", slowly("GET %s HTTP/1.1\r\nHost: x\r\n\r\n")},
		{"connections_to_pages_that_say_nothing", slowly("")},
		{"headers_of_pages_that_do_not_end", slowly("GET %s HTTP/1.1\r\nHost: x\r\nX-Slow: " + strings.Repeat("x", 4<<10))},
		{"connections_to_pages_from_everywhere", fromEverywhere},
	}
}

// slowly has one address open many connections, say something on each, and go no further.
func slowly(say string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		for at, path := range shared.pages {
			text := say
			if strings.Contains(say, "%s") {
				text = fmt.Sprintf(say, path)
			}
			before := heap()
			conns := w.crowd(t, at, text, 1000, "127.0.0.20")
			w.pageIsShown(t, at, path)
			if grown := heap() - before; grown > mostHeap {
				t.Errorf("%s: the heap has grown by %d MiB", path, grown>>20)
			}
			atMost(t, conns, keptOfAddress)
		}
	}
}

// fromEverywhere has many addresses open as many connections as each may have.
func fromEverywhere(t *testing.T, w *world) {
	var sources []string
	for i := range 2 * keptOfAll / keptOfAddress {
		sources = append(sources, fmt.Sprintf("127.0.3.%d", i+1))
	}
	for at, path := range shared.pages {
		conns := w.crowd(t, at, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path), len(sources)*keptOfAddress, sources...)
		w.pageIsShown(t, at, path)
		atMost(t, conns, keptOfAll)
	}
}

// crowd opens connections from some addresses in turn, and says something on each.
func (w *world) crowd(t *testing.T, at, say string, n int, sources ...string) (all []net.Conn) {
	t.Helper()
	for i := range n {
		c, err := from(sources[i%len(sources)])(t.Context(), "tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // the port may have closed it
		_, _ = io.WriteString(c, say)       // it may be closed already
		all = append(all, c)
	}
	return all
}

// pageIsShown fails the test unless somebody else is answered at once.
func (w *world) pageIsShown(t *testing.T, at, path string) {
	t.Helper()
	client := &http.Client{
		Transport: &http.Transport{DialContext: from("127.0.0.21"), DisableKeepAlives: true}, Timeout: time.Minute,
	}
	resp, err := client.Get("http://" + at + path)
	if err != nil {
		t.Fatalf("%s of somebody else: %v", path, err)
	}
	text, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusOK || len(text) == 0 {
		t.Errorf("%s of somebody else: %s, %d bytes, %v", path, resp.Status, len(text), err)
	}
}

// atMost waits until the other end has kept so many connections at most: what it sent to the others is read first.
func atMost(t *testing.T, conns []net.Conn, most int) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		if n := stillOpen(conns); n > most {
			return fmt.Errorf("%d connections are kept, want %d at most", n, most)
		}
		return nil
	})
}

// stillOpen counts the connections that the other end has kept.
func stillOpen(all []net.Conn) (n int) {
	for _, c := range all {
		if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			continue
		}
		var timeout net.Error
		if _, err := io.Copy(io.Discard, c); errors.As(err, &timeout) && timeout.Timeout() {
			n++
		}
	}
	return n
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
