package plugin

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

// Attempt is the time for which a caller waits for one replica before it asks the next.
const Attempt = 3 * time.Second

// Callers are the clients of many hosts, and ask any of the replicas.
type Callers struct {
	HTTP *http.Client
	// URLs of the replicas.
	URLs []string
	// Count counts requests and answers.
	Count func(string)
	// Delay is the time that a message is on its way beside what the network takes; nil for no longer.
	Delay func(*rand.Rand) time.Duration
	// Wrong notes an answer that is not as the API promises.
	Wrong func(format string, args ...any)

	// receipts are those that each host was given last.
	receipts  sync.Map
	impatient atomic.Pointer[median]
}

// Once sends one request to one replica. An error means that there is no answer; the request may yet be served. A body
// that is a function is asked for it.
func (c *Callers) Once(ctx context.Context, rng *rand.Rand, url, method, path string, body any) (Answer, error) {
	m := c.impatient.Load()
	if m == nil {
		return c.once(ctx, rng, url, method, path, body, Attempt, 0)
	}
	wait, told := m.wait(), time.Duration(0)
	if rng.IntN(2) == 0 {
		told = wait
	}
	a, err := c.once(ctx, rng, url, method, path, body, wait, told)
	if m.met(err == nil); err == nil {
		c.Count("impatient call answered")
	} else {
		c.Count("impatient call given up")
	}
	return a, err
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
	if of, is := body.(func() any); is {
		body = of()
	}
	host := hostOf(body)
	if _, is := body.(showing); is {
		body = nil
	}
	receipt := c.Receipt(host)
	a, err := send(ctx, c.HTTP, method, url+wire.Prefix+path, body, told, &receipt)
	if a.URL = url; host != "" && receipt != "" {
		c.receipts.Store(host, receipt)
	}
	c.travel(ctx, rng)
	if err == nil && a.Code != 0 {
		c.Count("refusal " + string(a.Reason))
		if text := a.incomplete(); text != "" && c.Wrong != nil {
			c.Wrong("%s %s: %d %s: %s: %s", method, url, a.Status, a.Reason, a.Message, text)
		}
	}
	return a, err
}

// Receipt returns what a host was given last; empty for nothing.
func (c *Callers) Receipt(host string) string {
	shown, _ := c.receipts.Load(host)
	receipt, _ := shown.(string)
	return receipt
}

// showing is a request without a body, of a host.
type showing string

// Show has a host show a replica its receipt, as bcsnet-node does if no plugin asks, with a GET.
func (c *Callers) Show(ctx context.Context, rng *rand.Rand, url, path, host string) (Answer, error) {
	return c.once(ctx, rng, url, http.MethodGet, path, showing(host), Attempt, 0)
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
	case showing:
		return string(r)
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
