package client

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestOneConnection has each request bring its connection and end it, so that a replica keeps none for a process that
// is gone.
func TestOneConnection(t *testing.T) {
	var from []string
	r := serve(t, func(w http.ResponseWriter, q *http.Request) {
		if from = append(from, q.RemoteAddr); !q.Close {
			t.Errorf("%s asks for a connection that stays", q.RemoteAddr)
		}
		well(w, q)
	})
	c := clientOf(r.url(t))
	for range 2 {
		if err := c.Do(within(t, time.Minute), question()); err != nil {
			t.Fatal(err)
		}
	}
	if from[0] == from[1] {
		t.Errorf("both came from %s", from[0])
	}
}

// TestAnsweredEarly has a replica refuse a long request without reading it: the refusal arrives all the same.
func TestAnsweredEarly(t *testing.T) {
	r := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	call := question()
	call.Body = strings.Repeat("x", 4<<20)
	if err := clientOf(r.url(t)).Do(within(t, time.Second), call); !errors.Is(err, ErrToken) {
		t.Errorf("%v", err)
	}
}

// TestNoHandshake has something that takes connections and says nothing where a replica is to be: the next one is
// asked.
func TestNoHandshake(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	mute := &url.URL{Scheme: "https", Host: listener.Addr().String()}
	r, dir := secure(t, well)
	c := nodeClient(t, dir, "example.com", mute, r.url(t))
	c.Preferred = mute.String()
	if err := c.Do(within(t, time.Minute), question()); err != nil || c.Replica != r.URL || c.Tries != 2 {
		t.Errorf("%v by %s after %d tries", err, c.Replica, c.Tries)
	}
	err = nodeClient(t, dir, "example.com", mute).Do(within(t, 300*time.Millisecond), question())
	if err == nil || !strings.Contains(err.Error(), "TLS handshake") {
		t.Errorf("alone: %v", err)
	}
}
