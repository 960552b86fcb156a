package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/httpapi"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/judge"
)

// attempt is how long a caller waits for one replica before it asks the next.
const attempt = 3 * time.Second

// answer is what the callers look at.
type answer struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Reason  ipam.Reason     `json:"reason"`
	Data    json.RawMessage `json:"data"`
}

// addr is the address of a served ADD.
func (a answer) addr() netip.Addr {
	var data httpapi.Allocation
	if json.Unmarshal(a.Data, &data) != nil {
		return netip.Addr{}
	}
	addr, err := netip.ParseAddr(data.IPAddr)
	if err != nil {
		return netip.Addr{}
	}
	return addr
}

// callers are the clients of all kubelets.
type callers struct {
	*judge.Verdict
	http *http.Client
	urls []string
}

// once is one request to one replica. An error says that there is no answer; the request may yet be served.
func (c *callers) once(ctx context.Context, url, method, path string, body any) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, method, url+httpapi.Prefix+path, bytes.NewReader(text))
	if err != nil {
		return a, err
	}
	c.Count("request " + method)
	resp, err := c.http.Do(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(resp.Body); err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s: %q: %w", resp.Status, text, err)
	}
	if a.Code != 0 {
		c.Count("refusal " + string(a.Reason))
	}
	return a, nil
}

// ask sends a request to a replica, and to the next one when it has no answer, until one of them serves it or
// refuses it for good. It gives up (ok false) when its caller says so, or the context ends.
func (c *callers) ask(ctx context.Context, rng *rand.Rand, method, path string, body any, giveUp func() bool) (a answer, ok bool) {
	first := rng.IntN(len(c.urls))
	for n := 0; ctx.Err() == nil; n++ {
		var err error
		a, err = c.once(ctx, c.urls[(first+n)%len(c.urls)], method, path, body)
		switch {
		case err != nil:
			c.Count("request without an answer")
		case a.Code == 0, !temporary(a.Reason):
			return a, true
		}
		if giveUp() {
			return a, false
		}
		if n%len(c.urls) == len(c.urls)-1 {
			pause(ctx, time.Duration(20+rng.IntN(100))*time.Millisecond)
		}
	}
	return a, false
}

// temporary says whether the same request can succeed later.
func temporary(r ipam.Reason) bool {
	for _, info := range ipam.ReasonTable() {
		if info.Reason == r {
			// A pod that was created is there for everybody who reads; nothing else changes that.
			return info.Retry && r != ipam.ReasonPodNotFound && r != ipam.ReasonInternal
		}
	}
	return false
}

func wait() bool { return false }
