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

// tryAcquire takes the lock of a key unless somebody has it, or waits for it.
func (l *locks) tryAcquire(key string) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by[key] != nil {
		return func() {}, false
	}
	k := &lock{held: make(chan struct{}, 1), refs: 1}
	k.held <- struct{}{}
	l.by[key] = k
	return func() { <-k.held; l.forget(key, k) }, true
}

// forget drops the lock of a key when nobody has it any more, nor waits for it.
func (l *locks) forget(key string, k *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.refs--; k.refs == 0 {
		delete(l.by, key)
	}
}

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
	select {
	case k.held <- struct{}{}:
		return func() { <-k.held; l.forget(key, k) }, nil
	case <-ctx.Done():
		l.forget(key, k)
		return nil, ctx.Err()
	}
}
