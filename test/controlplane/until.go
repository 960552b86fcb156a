package controlplane

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// patience is long enough for what must come on a machine that is busy or stalls. Only a test that fails waits for so
// long.
const patience = 3 * time.Minute

// TakesLong leaves a test to make test-all, so that make test takes minutes.
func TakesLong(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: make test-all")
	}
}

// Until waits for a condition, for at most three minutes.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// Eventually repeats a check until it finds nothing wrong, for at most three minutes.
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	EventuallyWithin(t, patience, check)
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
