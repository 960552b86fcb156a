package httpapi

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// A caller that begins many large bodies and ends none is refused more of them, and nobody else is. When they end, it
// is answered again.
func TestBodiesOfOneSender(t *testing.T) {
	t.Parallel()
	f := newFixture(t, knows(&questions{}))
	send := func(source string, body io.Reader, length int64) int {
		r := localRequest(http.MethodPost, prefixOf("/gc"), body)
		r.RemoteAddr, r.TLS, r.ContentLength = source, &tls.ConnectionState{}, length
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		return w.Code
	}
	const part = maxAttachmentsBody / 2
	var ends []*io.PipeWriter
	var all sync.WaitGroup
	for range 2 * mostOfSender / maxAttachmentsBody {
		reader, writer := io.Pipe()
		ends = append(ends, writer)
		all.Go(func() {
			send("192.0.2.7:1", reader, maxAttachmentsBody)
			_ = reader.Close() // always nil
		})
		// An error is that of a body that is refused.
		if _, err := io.WriteString(writer, "{"+strings.Repeat(" ", part)); err != nil {
			break
		}
	}
	again := func(source string) int {
		body := "{" + strings.Repeat(" ", part) + "}"
		return send(source, strings.NewReader(body), int64(len(body)))
	}
	if status := again("192.0.2.7:1"); status != http.StatusServiceUnavailable {
		t.Errorf("one more is answered with %d", status)
	}
	if status := again("192.0.2.8:1"); status != http.StatusForbidden {
		t.Errorf("another caller is answered with %d", status)
	}
	for _, end := range ends {
		_ = end.Close() // always nil
	}
	all.Wait()
	if status := again("192.0.2.7:1"); status != http.StatusForbidden {
		t.Errorf("after they have ended: %d", status)
	}
	if n := len(f.limits.memory.senders.by); n > 0 {
		t.Errorf("%d callers are remembered", n)
	}
}

// Small bodies count by what they announce.
func TestSmallBodiesOfOneSender(t *testing.T) {
	t.Parallel()
	m := newMemoryLimit()
	if !m.senders.take("a", mostOfSender-maxBody) {
		t.Fatal("there is no room")
	}
	read := func(who string, length int64) error {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		r.ContentLength = length
		_, _, err := m.readSmall(httptest.NewRecorder(), r, maxBody, who)
		return err
	}
	if err := read("a", -1); err != nil {
		t.Error(err)
	}
	if !m.senders.take("a", 1) {
		t.Fatal("what was read counts on")
	}
	if err := read("a", -1); err == nil || asRefusal(err).Reason != ipam.ReasonUnavailable {
		t.Errorf("a body of any length: %v", err)
	}
	for _, who := range []string{"b", ""} {
		if err := read(who, -1); err != nil {
			t.Errorf("%q: %v", who, err)
		}
	}
	if err := read("a", 2); err != nil {
		t.Errorf("a body of two bytes: %v", err)
	}
}
