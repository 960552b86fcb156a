package controlplane

import (
	"context"
	"errors"
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

// Who waits looks again after restsPerLook times as long as the look took, at least minRest and at most maxRest. One
// that asks the API server without a pause would keep it from what is waited for, and all other tests with it.
const (
	restsPerLook     = 20
	minRest, maxRest = 2 * time.Millisecond, 200 * time.Millisecond
)

// Until waits for a condition, for at most three minutes.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	waits := errors.New("waited in vain: " + what)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience) // it serves cleanups, too
	defer cancel()
	if err := poll(ctx, func() error {
		if ok() {
			return nil
		}
		return waits
	}); err != nil {
		t.Fatal(waits)
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
	return poll(ctx, check)
}

// poll repeats a check, with rests, until it finds nothing wrong or the context ends.
func poll(ctx context.Context, check func() error) error {
	for {
		began := time.Now()
		err := check()
		if err == nil {
			return nil
		}
		again := time.NewTimer(min(max(restsPerLook*time.Since(began), minRest), maxRest))
		select {
		case <-ctx.Done():
			again.Stop()
			return fmt.Errorf("%w; at last: %w", ctx.Err(), err)
		case <-again.C:
		}
	}
}
