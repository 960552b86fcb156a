package attacks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
)

// floods are attacks by how many requests come.
func floods() []attack {
	return []attack{{"flood_of_a_node", floodOfANode}, {"flood_of_unknown_tokens", floodOfTokens}}
}

// flood sends requests, many at a time, until one is refused for its rate; so many at most.
func flood(most int, send func(i int) int) (refused bool) {
	var done atomic.Bool
	var next atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for !done.Load() {
				i := int(next.Add(1))
				if i > most {
					return
				}
				if send(i) == http.StatusTooManyRequests {
					done.Store(true)
				}
			}
		})
	}
	all.Wait()
	return done.Load()
}

// A node that sends without end is refused, and with it nobody else; what it gives back is taken.
func floodOfANode(t *testing.T, w *world) {
	const host = "10.77.0.13"
	w.makeNode(t, "node-flood", host)
	w.pod(t, shop, "plugin-flood", "node-flood", "plugin")
	token := w.token(t, "plugin", "plugin-flood")
	controlplane.Eventually(t, func() error {
		h, err := w.trySend(t.Context(), ask{token: token, method: "GET", path: prefix + "/host/" + host})
		if err == nil && h.Code != 0 {
			err = fmt.Errorf("%s", h.text)
		}
		return err
	})
	k := w.keep(t, "")
	fast := func() bool {
		return flood(5000, func(int) int {
			return k.send(t.Context(), ask{token: token, method: "GET", path: prefix + "/host/" + host})
		})
	}
	if !fast() {
		t.Fatal("5,000 requests of one node are taken")
	}
	for range 5 {
		if !fast() {
			t.Fatal("it is taken again")
		}
		for _, a := range []ask{
			{method: "DELETE", path: prefix, body: w.add("web-none", host)},
			{method: "POST", path: prefix + "/gc", body: gcOf(host)},
		} {
			a.token = token
			w.send(t, a).done(t, a.method+" of a node that is refused")
		}
		w.send(t, ask{token: w.node, method: "POST", path: prefix, body: w.add("web-mine", mine)}).done(t, "another node")
	}
}

// The API server is not asked about tokens without end. Whoever is remembered is answered.
func floodOfTokens(t *testing.T, w *world) {
	const source = "127.0.0.9"
	w.send(t, list(w.operator)).done(t, "an operator before")
	k := w.keep(t, source)
	if !flood(5000, func(i int) int { return k.send(t.Context(), list(fmt.Sprintf("token-%d", i))) }) {
		t.Fatal("5,000 tokens are looked up")
	}
	a := list(w.operator)
	a.source = source
	w.send(t, a).done(t, "an operator from the same address")
}

// kept sends requests by connections that are kept.
type kept struct {
	http *http.Client
	// opened is the number of connections that there have been.
	opened *atomic.Int64
}

func (w *world) keep(t *testing.T, source string) kept {
	t.Helper()
	opened, dial := &atomic.Int64{}, from(source)
	transport := &http.Transport{
		TLSClientConfig: w.trust(), MaxIdleConnsPerHost: 256,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			opened.Add(1)
			return dial(ctx, network, address)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return kept{&http.Client{Transport: transport, Timeout: time.Minute}, opened}
}

// send returns the status of an answer of the shipped replica; 0 for none.
func (k kept) send(ctx context.Context, a ask) int { return k.sendTo(ctx, shared.shipped, a) }

func (k kept) sendTo(ctx context.Context, to *inprocess.Controller, a ask) int {
	var body io.Reader = http.NoBody
	if a.body != nil {
		text, err := json.Marshal(a.body)
		if err != nil {
			return 0
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, a.method, "https"+to.URL[len("http"):]+a.path, body)
	if err != nil {
		return 0
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	resp, err := k.http.Do(r)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is kept
	_ = resp.Body.Close()                 // it is read
	return resp.StatusCode
}
