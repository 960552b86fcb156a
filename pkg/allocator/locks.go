package allocator

import (
	"context"
	"sync"
)

// locks is one lock per key, with a deadline for who waits.
type locks struct {
	mu sync.Mutex
	by map[string]*lock
}

type lock struct {
	held chan struct{} // holds one value while the lock is taken
	refs int
}

func newLocks() *locks { return &locks{by: map[string]*lock{}} }

// acquire takes the lock of a key and returns how to give it back.
func (l *locks) acquire(ctx context.Context, key string) (release func(), err error) {
	l.mu.Lock()
	k := l.by[key]
	if k == nil {
		k = &lock{held: make(chan struct{}, 1)}
		l.by[key] = k
	}
	k.refs++
	l.mu.Unlock()
	forget := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.refs--; k.refs == 0 {
			delete(l.by, key)
		}
	}
	select {
	case k.held <- struct{}{}:
		return func() { <-k.held; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
}
