package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/httpapi"
	"github.com/bcsnet/bcsnet/pkg/ipam"
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

// addrs are the addresses of a served ADD, in order.
func (a answer) addrs() (all []netip.Addr) {
	var data httpapi.Allocation
	if json.Unmarshal(a.Data, &data) != nil {
		return nil
	}
	for _, ip := range data.IPs {
		if addr, err := netip.ParseAddr(ip.IPAddr); err == nil {
			all = append(all, addr)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// once is one request to one replica. An error says that there is no answer; the request may yet be served.
func (w *world) once(rng *rand.Rand, replica int, method, path string, body any) (a answer, err error) {
	wait(delay(rng))
	ctx, cancel := context.WithTimeout(w.ctx, attempt)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return a, err
	}
	url := "http://" + w.replicas[replica].name + httpapi.Prefix + path
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return a, err
	}
	w.verdict.Count("request " + method)
	resp, err := w.http.Do(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(resp.Body); err != nil {
		return a, err
	}
	wait(delay(rng) / 4)
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s: %q: %w", resp.Status, text, err)
	}
	if a.Code != 0 {
		w.verdict.Count("refusal " + string(a.Reason))
	}
	return a, nil
}

// ask sends a request to a replica, and to the next one when it has no answer, until one of them serves it or
// refuses it for good. It gives up (ok false) when its caller says so, or the world ends.
func (w *world) ask(rng *rand.Rand, method, path string, body any, giveUp func() bool) (a answer, ok bool) {
	first := rng.IntN(replicas)
	for n := 0; w.ctx.Err() == nil; n++ {
		var err error
		a, err = w.once(rng, (first+n)%replicas, method, path, body)
		switch {
		case err != nil:
			w.verdict.Count("request without an answer")
		case a.Code == 0, !temporary(a.Reason):
			return a, true
		}
		if giveUp() {
			return a, false
		}
		if n%replicas == replicas-1 {
			wait(time.Duration(20+rng.IntN(100)) * time.Millisecond * time.Duration(min(1+n/replicas, 8)))
		}
	}
	return a, false
}

// temporary reports whether the same request can succeed later.
func temporary(r ipam.Reason) bool {
	for _, info := range ipam.ReasonTable() {
		if info.Reason == r {
			// A pod that was created is there for everybody who reads; nothing else changes that.
			return info.Retry && r != ipam.ReasonPodNotFound && r != ipam.ReasonInternal
		}
	}
	return false
}

func never() bool { return false }
