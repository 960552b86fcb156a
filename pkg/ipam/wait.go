package ipam

import (
	"context"
	"slices"
)

type waiter struct {
	version uint64
	done    chan error // gets one value
}

// Reached takes note that the watch has delivered everything up to version.
func (x *Index) Reached(version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reached(version)
}

// Seen is the version that the watch has reached. It goes back by a Restart alone.
func (x *Index) Seen() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.seen
}

// WaitSeen returns when the watch has reached version, or with ErrRestarted or the context's error.
func (x *Index) WaitSeen(ctx context.Context, version uint64) error {
	x.mu.Lock()
	if x.seen >= version {
		x.mu.Unlock()
		return nil
	}
	w := waiter{version, make(chan error, 1)}
	x.waiters = append(x.waiters, w)
	x.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		x.mu.Lock()
		defer x.mu.Unlock()
		x.waiters = slices.DeleteFunc(x.waiters, func(o waiter) bool { return o.done == w.done })
		return ctx.Err()
	}
}

// reached moves seen forward and wakes who waits for it. There are at most as many waiters as
// requests under way.
func (x *Index) reached(version uint64) {
	if version <= x.seen {
		return
	}
	x.seen = version
	x.waiters = slices.DeleteFunc(x.waiters, func(w waiter) bool {
		if w.version > version {
			return false
		}
		w.done <- nil
		return true
	})
}
