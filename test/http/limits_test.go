package http_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// dial opens a connection to the shared controller.
func dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(shared.controller.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// trickle sends a byte now and then until the other side ends the connection.
func trickle(c net.Conn, stop <-chan struct{}) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			if _, err := c.Write([]byte("a")); err != nil {
				return
			}
		}
	}
}

// cutOff sends a beginning, trickles on, and returns what comes back until the connection ends, and when
// it did.
func cutOff(t *testing.T, beginning string) (text string, after time.Duration) {
	t.Helper()
	c := dial(t)
	if _, err := io.WriteString(c, beginning); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	stop := make(chan struct{})
	trickled := make(chan struct{})
	go func() { defer close(trickled); trickle(c, stop) }()
	defer func() { close(stop); <-trickled }()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatal("the connection is open after a minute")
	}
	return string(all), time.Since(began)
}

// What the controller gives a client for the header and for the body of a request; a question of the scheduler has to
// keep a pace, and is refused when it has not after two seconds.
const (
	headerTime   = 5 * time.Second
	bodyTime     = 15 * time.Second
	questionTime = 2 * time.Second
)

// cutOffIn: a deadline of the kernel's is a few milliseconds late here. The tests of this package run six at once on
// two processors, where a goroutine has waited for up to a second; so two are allowed, and half a second before, for
// the request's way to the server.
func cutOffIn(t *testing.T, after, want time.Duration) {
	t.Helper()
	if after < want-500*time.Millisecond || after > want+2*time.Second {
		t.Errorf("cut off after %s, want %s", after, want)
	}
}

// A client that is slow on purpose is cut off: after five seconds in the header, fifteen in the body.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	t.Run("header", func(t *testing.T) {
		t.Parallel()
		text, after := cutOff(t, "POST "+prefix+" HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
		cutOffIn(t, after, headerTime)
		if strings.Contains(text, " 200 ") {
			t.Errorf("answered %q", text)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		c := dial(t)
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		began := time.Now()
		if _, err := io.ReadAll(c); err != nil {
			t.Errorf("not closed: %v", err)
		}
		cutOffIn(t, time.Since(began), headerTime)
	})
	t.Run("body", func(t *testing.T) {
		t.Parallel()
		text, after := cutOff(
			t, "POST "+prefix+
				" HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: slow\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{")
		cutOffIn(t, after, bodyTime)
		for _, part := range []string{
			"HTTP/1.1 408 ", `"code":1`, "the body did not arrive within 15s", `"reason":"BadRequest"`, `"request_id":"slow"`,
		} {
			if !strings.Contains(text, part) {
				t.Errorf("the answer has no %q: %s", part, text)
			}
		}
	})
	t.Run("question", func(t *testing.T) {
		t.Parallel()
		text, after := cutOff(
			t, "POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: slow\r\nContent-Length: 60000000\r\n\r\n{")
		cutOffIn(t, after, questionTime)
		for _, part := range []string{
			"HTTP/1.1 408 ", "the body comes too slowly", `"reason":"BadRequest"`, `"request_id":"slow"`,
		} {
			if !strings.Contains(text, part) {
				t.Errorf("the answer has no %q: %s", part, text)
			}
		}
	})
	t.Run("reader", func(t *testing.T) {
		t.Parallel()
		// A client that sends requests and reads no answer fills the buffers, and is cut off.
		c := dial(t)
		request := "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
		_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
		for {
			if _, err := io.WriteString(c, request); err != nil {
				var timeout net.Error
				if errors.As(err, &timeout) && timeout.Timeout() {
					t.Error("the connection is open after a minute")
				}
				return
			}
		}
	})
}

func TestLargeHeader(t *testing.T) {
	t.Parallel()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, shared.controller.URL+prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Large", strings.Repeat("x", 80<<10))
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %s", resp.Status)
	}
	r.Header.Set("X-Large", strings.Repeat("x", 50<<10))
	if resp, err = transport.RoundTrip(r); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %s with a header within the bound", resp.Status)
	}
}

// A body that ends before its stated length, and a client that leaves.
func TestShortBody(t *testing.T) {
	t.Parallel()
	c := dial(t)
	if _, err := io.WriteString(c, "POST "+prefix+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 400 ") ||
		!strings.Contains(string(text), "the body ended early") {
		t.Errorf("%q, %v", text, err)
	}
}

// Connections that do nothing keep nobody from being served.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	for i := range 200 {
		c := dial(t)
		if i%2 == 0 {
			continue // not a byte
		}
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	s := newSite(t)
	s.pool(20, nil)
	began := time.Now()
	for i := range 20 {
		s.add(object{"host": s.Host, "owner": s.owner(fmt.Sprint(i))}).done(t)
	}
	if took := time.Since(began); took > time.Minute { // no request waits for those connections
		t.Errorf("20 requests took %s", took)
	}
}
