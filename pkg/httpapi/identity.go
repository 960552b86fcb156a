package httpapi

import (
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/access"
)

const (
	// trusted is the time for which a connection caches its caller and the caller's permissions. It comes on top of the
	// Gate's cache.
	trusted = 10 * time.Second
	// maxAllowed bounds the permissions that a connection caches.
	maxAllowed = 256
)

// identity is the caller of a connection. Each connection has its own, so that callers do not share a lock.
type identity struct {
	user access.User
	// authorization is the header that identified the caller.
	authorization string
	until         time.Time

	mu      sync.Mutex
	allowed map[access.Question]struct{}
}

func newIdentity(user access.User, authorization string) *identity {
	return &identity{
		user: user, authorization: authorization, until: time.Now().Add(trusted),
		allowed: map[access.Question]struct{}{},
	}
}

// may reports whether the connection has cached that its caller may do something.
func (i *identity) may(q access.Question) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, ok := i.allowed[q]
	return ok
}

// keep caches that the caller may do something.
func (i *identity) keep(q access.Question) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.allowed) >= maxAllowed {
		clear(i.allowed)
	}
	i.allowed[q] = struct{}{}
}
