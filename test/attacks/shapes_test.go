package attacks_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// shapes are attacks by the form of a request.
func shapes() []attack {
	return []attack{
		{"paths_in_disguise", paths}, {"smuggled_requests", smuggled}, {"another_protocol", protocols},
		{"huge_headers_and_tokens", hugeHeaders}, {"huge_bodies", hugeBodies}, {"slow_senders", slowSenders},
	}
}

// dialTLS returns a connection over TLS.
func (w *world) dialTLS(t *testing.T, address string) net.Conn {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	c, err := (&tls.Dialer{Config: w.trust()}).DialContext(ctx, "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// raw sends text over TLS, and returns what comes back until the connection ends.
func (w *world) raw(t *testing.T, config *tls.Config, text string) string {
	t.Helper()
	address := strings.TrimPrefix(shared.shipped.URL, "http://")
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	c, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		return "" // it has been cut off
	}
	answer, _ := io.ReadAll(c) // however it ends
	return string(answer)
}

// Without a token no spelling of a path is another one; with a node's, none is more than the node may.
func paths(t *testing.T, w *world) {
	host := prefix + "/host/" + theirs
	for _, path := range []string{
		"//netservicecontroller/v1/allocator", prefix + "/", prefix + "//host/" + theirs, prefix + "/./host/" + theirs,
		prefix + "/x/../host/" + theirs, prefix + "/host/%2e%2e/host/" + theirs, prefix + "%2fhost%2f" + theirs,
		"/%6eetservicecontroller/v1/allocator/host/" + theirs, strings.ToUpper(prefix) + "/host/" + theirs,
		prefix + ";/host/" + theirs, prefix + "/host/" + mine + "/../" + theirs, prefix + "/host/" + mine + "%2f.." + "%2f" + theirs,
		prefix + "/host/" + mine + "%00" + theirs, host + "/", host + "?host=" + mine, prefix + "/host/::ffff:" + theirs,
	} {
		for name, token := range map[string]string{"nobody": "", "a node": w.operatorOnNode} {
			text := "DELETE " + path + " HTTP/1.1\r\nHost: " + serverName + "\r\nConnection: close\r\n"
			if token != "" {
				text += "Authorization: Bearer " + token + "\r\n"
			}
			if answer := w.raw(t, w.trust(), text+"\r\n"); strings.Contains(answer, `"result":true`) ||
				strings.HasPrefix(answer, "HTTP/1.1 30") {
				t.Errorf("%s, %s: %.200s", name, path, answer)
			}
		}
	}
}

// A request inside another one: whoever reads the one sees no second.
func smuggled(t *testing.T, w *world) {
	inner := "GET " + prefix + " HTTP/1.1\r\nHost: " + serverName + "\r\nAuthorization: Bearer " + w.operator +
		"\r\nConnection: close\r\n\r\n"
	head := "POST " + prefix + " HTTP/1.1\r\nHost: " + serverName + "\r\n"
	for name, text := range map[string]string{
		"two lengths":            head + fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n\r\n", len(inner)) + inner,
		"a length and chunks":    head + "Content-Length: 4\r\nTransfer-Encoding: xchunked\r\n\r\n" + inner,
		"two encodings":          head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + inner,
		"a blank before a colon": head + "Content-Length : 0\r\n\r\n" + inner,
		"a folded header":        head + "X: a\r\n Content-Length: 0\r\nTransfer-Encoding:\r\n chunked\r\n\r\n" + inner,
		"a negative length":      head + "Content-Length: -1\r\n\r\n" + inner,
		"two hosts":              "GET " + prefix + " HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + inner,
	} {
		if answer := w.raw(t, w.trust(), text); strings.Contains(answer, `"result":true`) {
			t.Errorf("%s: %.300s", name, answer)
		}
	}
}

// The port speaks HTTP/1.1 over TLS 1.2 and newer, and is not talked into less.
func protocols(t *testing.T, w *world) {
	address := strings.TrimPrefix(shared.shipped.URL, "http://")
	for name, change := range map[string]func(*tls.Config){
		"TLS 1.1":  func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 },
		"no CA":    func(c *tls.Config) { c.RootCAs = nil },
		"its name": func(c *tls.Config) { c.ServerName = "bcsnet-controller.attacker.svc" },
		"h2 alone": func(c *tls.Config) { c.NextProtos = []string{"h2"} },
	} {
		config := w.trust()
		change(config)
		c, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = c.Close() // it should not be there
			t.Errorf("%s: a connection", name)
		}
	}
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	if answer := w.raw(t, w.trust(), preface); strings.HasPrefix(answer, "\x00") || strings.Contains(answer, " 200 ") {
		t.Errorf("HTTP/2 without asking: %q", answer)
	}
	upgrade := "GET " + prefix + " HTTP/1.1\r\nHost: " + serverName +
		"\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n"
	a := w.raw(t, w.trust(), strings.Replace(upgrade, "Upgrade, HTTP2", "close, Upgrade, HTTP2", 1))
	if !strings.HasPrefix(a, "HTTP/1.1 401") {
		t.Errorf("an upgrade: %.100q", a)
	}
}

func hugeHeaders(t *testing.T, w *world) {
	w.send(t, list(strings.Repeat("a", 20<<10))).refused(t, "a token of 20 KiB", ipam.ReasonUnauthenticated)
	many := "GET " + prefix + " HTTP/1.1\r\nHost: " + serverName + "\r\n" + strings.Repeat("X: "+strings.Repeat("a", 1000)+"\r\n", 100)
	if answer := w.raw(t, w.trust(), many+"\r\n"); answer != "" && !strings.HasPrefix(answer, "HTTP/1.1 431") {
		t.Errorf("headers of 100 KiB: %.100q", answer)
	}
}

// Of who is not known no body is read; of who is, none that is longer or deeper than can be of use.
func hugeBodies(t *testing.T, w *world) {
	long := `{"host":"` + strings.Repeat("a", 5<<20) + `"}`
	deep := strings.Repeat(`{"a":`, 10100) + "1" + strings.Repeat("}", 10100)
	for _, name := range []string{"ADD", "GC", "galaxy's release", "filter"} {
		a := w.calls()[name]
		a.body = long
		if h, err := w.trySend(t.Context(), a); err == nil { // or the connection has ended
			h.refused(t, "nobody: "+name, ipam.ReasonUnauthenticated)
		}
	}
	for _, name := range []string{"ADD", "GC"} {
		a := w.calls()[name]
		a.token, a.body = w.node, long
		if h, err := w.trySend(t.Context(), a); err == nil && h.status != http.StatusRequestEntityTooLarge {
			t.Errorf("a long body of %s: HTTP %d", name, h.status)
		}
		a.body = deep
		h := w.send(t, a)
		h.refused(t, "a deep body of "+name, ipam.ReasonBadRequest, ipam.ReasonNotPermitted)
	}
}

// Who connects and says little is cut off, and others are answered meanwhile.
func slowSenders(t *testing.T, w *world) {
	address := strings.TrimPrefix(shared.shipped.URL, "http://")
	ends := make(chan error)
	slow := []string{
		"", "\x16", "\x16\x03\x01\x02\x00\x01", "G", "GET " + prefix + " HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
	}
	const each = 40
	for range each {
		for _, begin := range slow {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				defer c.Close()
				_, err := io.WriteString(c, begin)
				if err == nil {
					_ = c.SetReadDeadline(time.Now().Add(30 * time.Second)) // longer than any of them may last
					_, err = io.Copy(io.Discard, c)
				}
				ends <- err
			}()
		}
	}
	w.send(t, list(w.operator)).done(t, "a list meanwhile")
	w.send(t, ask{token: w.node, method: "POST", path: prefix, body: w.add("web-mine", mine)}).done(t, "an ADD meanwhile")
	for range each * len(slow) {
		if e, ok := errors.AsType[net.Error](<-ends); ok && e.Timeout() {
			t.Error("a connection that says nothing is kept")
		}
	}
}
