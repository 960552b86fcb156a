package store

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// maxSpread bounds, in seconds, what a wait is spread by.
const maxSpread = 60

// SpreadReads has reads that the API server turns away for a while come back at different times, up to half as long again
// later than it says: client-go waits exactly as long, so that all that were turned away together would come back
// together. Writes have a delay of their own. It wraps the transport of a client.
func SpreadReads(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil || r.Method != http.MethodGet || resp.StatusCode != http.StatusTooManyRequests {
			return resp, err
		}
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil || seconds <= 0 {
			return resp, nil
		}
		later := time.NewTimer(rand.N(time.Duration(min(seconds, maxSpread)) * time.Second / 2))
		defer later.Stop()
		select {
		case <-later.C:
		case <-r.Context().Done():
		}
		return resp, nil
	})
}
