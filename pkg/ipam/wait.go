package ipam

import (
	"context"
	"slices"
)

type waiter struct {
	version uint64
	done    func(error) // called once, with the lock held
}

// Reached takes note that the watch has delivered everything up to version.
func (x *Index) Reached(version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reached(version)
}

// Seen is the version that the watch has reached. It goes back by a ResetTo alone.
func (x *Index) Seen() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.seen
}

// WaitSeen returns when the watch has reached version, or with ErrReset or the context's error.
func (x *Index) WaitSeen(ctx context.Context, version uint64) error {
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
func (x *Index) WhenSeen(version uint64, done func(error)) (forget func()) {
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

// reached moves seen forward and tells who waits for it. There are at most as many waiters as
// requests and writes under way.
func (x *Index) reached(version uint64) {
	if version <= x.seen {
		return
	}
	x.seen = version
	x.waiters = slices.DeleteFunc(x.waiters, func(w *waiter) bool {
		if w.version > version {
			return false
		}
		w.done(nil)
		return true
	})
}
