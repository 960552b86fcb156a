package store

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// maxJitter bounds, in seconds, the wait to which the jitter adds up to half.
const maxJitter = 60

// JitterReads delays reads that the API server rejected for a while, by a random time of up to half of the requested
// wait. client-go waits exactly as long as requested, so all rejected reads would return at the same time. Writes have
// a delay of their own. JitterReads wraps the transport of a client.
func JitterReads(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil || r.Method != http.MethodGet || resp.StatusCode != http.StatusTooManyRequests {
			return resp, err
		}
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil || seconds <= 0 {
			return resp, nil
		}
		later := time.NewTimer(rand.N(time.Duration(min(seconds, maxJitter)) * time.Second / 2))
		defer later.Stop()
		select {
		case <-later.C:
		case <-r.Context().Done():
		}
		return resp, nil
	})
}
