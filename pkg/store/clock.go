package store

import (
	"net/http"
	"sync"
	"time"
)

// Clock estimates the time of the API server, so that replicas with different clocks agree. It learns from the Date
// header of every answer, which has whole seconds: each answer gives a lower and an upper bound of the offset, and the
// bounds narrow with every answer. While the local clock is within the bounds, it is used unchanged.
type Clock struct {
	mu        sync.Mutex
	low, high time.Duration // bounds of server minus local
	known     bool
	local     func() time.Time
	last      time.Time
}

// maxHold bounds the time by which the clock may run ahead rather than step back.
const maxHold = 2 * time.Second

// NewClock returns a clock based on a local one; nil means this machine's clock.
func NewClock(local func() time.Time) *Clock {
	if local == nil {
		local = steady(localTime)
	}
	return &Clock{local: local}
}

// steady returns a clock that is set once and then runs on by itself. If the local clock were set forward meanwhile, a
// new lease would begin in the future until the next answer of the API server corrects the offset. No DEL would match
// such a lease, and no later container of its pod could get it.
func steady(wall func() time.Time) func() time.Time {
	began, start := time.Now(), wall()
	return func() time.Time { return start.Add(time.Since(began)) } // the difference uses the monotonic part of began
}

// Now returns the best estimate of the API server's time. Each call returns a later time than the one before, unless a
// clock was set back by more than two seconds.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.local().Add(c.offset()).UTC()
	if !now.After(c.last) && c.last.Sub(now) < maxHold {
		now = c.last.Add(1)
	}
	c.last = now
	return now
}

// offset returns the offset to add to the local time.
func (c *Clock) offset() time.Duration {
	switch {
	case !c.known || c.low <= 0 && 0 <= c.high:
		return 0
	case c.low > 0:
		return c.low
	default:
		return c.high
	}
}

// observe evaluates the Date of an answer. sent and received are the local times of request and answer.
func (c *Clock) observe(date, sent, received time.Time) {
	low, high := date.Sub(received), date.Add(time.Second).Sub(sent)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known || low > c.high || high < c.low { // the first, or one of the clocks was set
		c.low, c.high, c.known = low, high, true
		return
	}
	c.low, c.high = max(c.low, low), min(c.high, high)
}

// Wrap returns a transport that makes the clock learn from every answer.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		sent := c.local()
		resp, err := next.RoundTrip(r)
		if err == nil {
			if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
				c.observe(date, sent, c.local())
			}
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
