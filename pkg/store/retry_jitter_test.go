package store

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestJitterReads: reads that are turned away together come back at different times, and nobody else is held up.
func TestJitterReads(t *testing.T) {
	turnedAway := func(status int, after string) http.RoundTripper {
		return JitterReads(roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {after}}, Body: http.NoBody}, nil
		}))
	}
	took := func(ctx context.Context, method string, through http.RoundTripper) time.Duration {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, method, "http://api.example", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		resp, err := through.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // there is none
		return time.Since(began)
	}
	synctest.Test(t, func(t *testing.T) {
		all := map[time.Duration]bool{}
		for range 20 {
			d := took(t.Context(), http.MethodGet, turnedAway(429, "4"))
			if all[d] = true; d >= 2*time.Second {
				t.Errorf("it waited for %s", d)
			}
		}
		if len(all) < 10 {
			t.Errorf("20 reads come back at %d times", len(all))
		}
		for what, d := range map[string]time.Duration{
			"a write":            took(t.Context(), http.MethodPut, turnedAway(429, "4")),
			"one that is served": took(t.Context(), http.MethodGet, turnedAway(200, "4")),
			"without a time":     took(t.Context(), http.MethodGet, turnedAway(429, "")),
			"with no time":       took(t.Context(), http.MethodGet, turnedAway(429, "0")),
			"with a wrong time":  took(t.Context(), http.MethodGet, turnedAway(429, "-1")),
		} {
			if d > 0 {
				t.Errorf("%s waited for %s", what, d)
			}
		}
		if d := took(t.Context(), http.MethodGet, turnedAway(429, "9223372036854775807")); d >= maxJitter*time.Second {
			t.Errorf("an absurd time: it waited for %s", d)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if d := took(short, http.MethodGet, turnedAway(429, "3600")); d > time.Millisecond {
			t.Errorf("nobody waits any more, and it waited for %s", d)
		}
	})
}
