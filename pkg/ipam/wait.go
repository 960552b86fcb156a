package ipam

import (
	"context"
	"slices"
)

// Reached records that the watch has delivered everything up to version.
func (x *feed) Reached(version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reached(version)
}

// Seen returns the version that the watch has reached. It goes back by a ResetTo alone.
func (x *feed) Seen() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.seen
}

// WaitSeen returns when the watch has reached version, or with ErrReset or the context's error.
func (x *feed) WaitSeen(ctx context.Context, version uint64) error {
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
func (x *feed) WhenSeen(version uint64, done func(error)) (forget func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.seen >= version {
		done(nil)
		return func() {}
	}
	w := &waiter{version, done}
	x.waiters = append(x.waiters, w)
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.waiters = slices.DeleteFunc(x.waiters, func(o *waiter) bool { return o == w })
	}
}
