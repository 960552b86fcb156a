package controlplane

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// patience is long enough for any event on a busy machine. Only failing tests wait that long.
const patience = 3 * time.Minute

// TakesLong skips a test except in make test-all, so that make test takes minutes.
func TakesLong(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: make test-all")
	}
}

// A waiting test rests for restsPerLook times the duration of its check, at least minRest and at most maxRest. Without
// rests, checks of the API server would delay the awaited event and all other tests.
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

// Eventually repeats a check until it succeeds, for at most three minutes.
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	EventuallyWithin(t, patience, check)
}

// EventuallyWithin does the same with another limit.
func EventuallyWithin(t testing.TB, limit time.Duration, check func() error) {
	t.Helper()
	if err := WaitFor(t.Context(), limit, check); err != nil {
		t.Fatal(err)
	}
}

// WaitFor repeats a check until it succeeds. After the limit or the end of the context, it returns the check's last
// error.
func WaitFor(ctx context.Context, limit time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return poll(ctx, check)
}

// poll repeats a check, with rests, until it succeeds or the context ends.
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
