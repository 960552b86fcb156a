package index

import (
	"context"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// Reached records that the watch has delivered everything up to version.
func (x *Feed) Reached(version uint64) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.Progress.Reached(version)
}

// Seen returns the version that the watch has reached. Only ResetTo moves it back.
func (x *Feed) Seen() uint64 {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.Progress.Seen
}

// WaitSeen returns when the watch has reached version, or with ErrReset or the context's error.
func (x *Feed) WaitSeen(ctx context.Context, version uint64) error {
	done := make(chan error, 1)
	forget := x.WhenSeen(version, func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		forget()
		return ctx.Err()
	}
}

// WhenSeen calls done once, when the watch has reached version, or with ErrReset. done must neither wait nor use the
// index. After forget it is not called any more.
func (x *Feed) WhenSeen(version uint64, done func(error)) (forget func()) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	if x.core.state.Progress.Seen >= version {
		done(nil)
		return func() {}
	}
	w := &ledger.Waiter{Version: version, Done: done}
	x.core.state.Progress.Waiters = append(x.core.state.Progress.Waiters, w)
	return func() {
		x.core.mu.Lock()
		defer x.core.mu.Unlock()
		x.core.state.Progress.Waiters = slices.DeleteFunc(x.core.state.Progress.Waiters,
			func(o *ledger.Waiter) bool { return o == w })
	}
}
