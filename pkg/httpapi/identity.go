package httpapi

import (
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/access"
)

const (
	// trusted is how long a connection remembers who calls by it and what they may. It comes on top of what the Gate
	// remembers.
	trusted = 10 * time.Second
	// maxAllowed is how many permissions a connection remembers.
	maxAllowed = 256
)

// identity is who calls by a connection. Those who share nothing but the replica share no lock for it.
type identity struct {
	user access.User
	// authorization is the header by which the caller is known.
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

// may reports whether the connection remembers that its caller may do something.
func (i *identity) may(q access.Question) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, ok := i.allowed[q]
	return ok
}

// keep remembers that the caller may do something.
func (i *identity) keep(q access.Question) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.allowed) >= maxAllowed {
		clear(i.allowed)
	}
	i.allowed[q] = struct{}{}
}
