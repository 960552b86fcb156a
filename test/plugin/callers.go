package plugin

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

// Attempt is how long a caller waits for one replica before it asks the next.
const Attempt = 3 * time.Second

// Callers are the clients of many hosts, and ask any of the replicas.
type Callers struct {
	HTTP *http.Client
	// URLs of the replicas.
	URLs []string
	// Count counts requests and answers.
	Count func(string)
	// Delay is how long a message is on its way beside what the network takes; nil for no longer.
	Delay func(*rand.Rand) time.Duration

	// receipts are those that each host was given last.
	receipts sync.Map
}

// Once sends one request to one replica. An error means that there is no answer; the request may yet be served.
func (c *Callers) Once(ctx context.Context, rng *rand.Rand, url, method, path string, body any) (Answer, error) {
	return c.once(ctx, rng, url, method, path, body, Attempt, 0)
}

// Hurried does what Once does, for a caller who waits for a limited time and states that time in the request.
func (c *Callers) Hurried(
	ctx context.Context, rng *rand.Rand, url, method, path string, body any, wait time.Duration,
) (Answer, error) {
	return c.once(ctx, rng, url, method, path, body, wait, wait)
}

func (c *Callers) once(
	ctx context.Context, rng *rand.Rand, url, method, path string, body any, wait, told time.Duration,
) (Answer, error) {
	c.travel(ctx, rng)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	c.Count("request " + method)
	host := hostOf(body)
	shown, _ := c.receipts.Load(host)
	receipt, _ := shown.(string)
	a, err := send(ctx, c.HTTP, method, url+wire.Prefix+path, body, told, &receipt)
	if a.URL = url; host != "" && receipt != "" {
		c.receipts.Store(host, receipt)
	}
	c.travel(ctx, rng)
	if err == nil && a.Code != 0 {
		c.Count("refusal " + string(a.Reason))
	}
	return a, err
}

// Ask sends a request to a replica, and to the next one when it has no answer, until one of them serves it or refuses
// it for good. It gives up (ok false) when its caller says so, or the context ends.
func (c *Callers) Ask(
	ctx context.Context, rng *rand.Rand, method, path string, body any, giveUp func() bool,
) (a Answer, ok bool) {
	first := rng.IntN(len(c.URLs))
	for n := 0; ctx.Err() == nil; n++ {
		var err error
		a, err = c.Once(ctx, rng, c.URLs[(first+n)%len(c.URLs)], method, path, body)
		switch {
		case err != nil:
			c.Count("request without an answer")
		case a.Code == 0, !a.Temporary():
			return a, true
		}
		if giveUp() {
			return a, false
		}
		if n%len(c.URLs) == len(c.URLs)-1 {
			wait(ctx, time.Duration(20+rng.IntN(100))*time.Millisecond*time.Duration(min(1+n/len(c.URLs), 8)))
		}
	}
	return a, false
}

// hostOf returns the host that a request is of; empty for none.
func hostOf(body any) string {
	switch r := body.(type) {
	case wire.AllocateRequest:
		return r.Host
	case wire.ReleaseRequest:
		return r.Host
	}
	return ""
}

func (c *Callers) travel(ctx context.Context, rng *rand.Rand) {
	if c.Delay != nil {
		wait(ctx, c.Delay(rng))
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
