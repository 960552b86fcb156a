package controlplane

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Until waits for a condition, for at most half a minute.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// Eventually repeats a check until it finds nothing wrong, for at most a minute.
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	EventuallyWithin(t, time.Minute, check)
}

// EventuallyWithin does what Eventually does, with another limit.
func EventuallyWithin(t testing.TB, limit time.Duration, check func() error) {
	t.Helper()
	if err := WaitFor(t.Context(), limit, check); err != nil {
		t.Fatal(err)
	}
}

// WaitFor repeats a check until it finds nothing wrong. After the limit, or when the context ends, the error
// states what it found at last.
func WaitFor(ctx context.Context, limit time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; at last: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}
