package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bcsnet/bcsnet/pkg/access"
)

// recheck is the time for which a finding about a connection is valid.
const recheck = time.Minute

// connection caches findings about the connection of a request. Most callers keep their connection, so that checks need
// not be repeated for each request.
type connection struct {
	net.Conn
	replica  atomic.Pointer[verdict]
	identity atomic.Pointer[identity]
}

// verdict is the finding whether a connection comes from a replica, with its time.
type verdict struct {
	yes bool
	at  time.Time
}

type connKey struct{}

// withConn puts a connection into the context of its requests.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connKey{}, &connection{Conn: c})
}

// setKnown passes to the listener whether the caller is known. Unknown callers may have only few connections.
func (c *connection) setKnown(known bool) {
	if counted, ok := c.Conn.(interface{ SetKnown(known bool) }); ok {
		counted.SetKnown(known)
	}
}

func connectionOf(r *http.Request) *connection {
	c, _ := r.Context().Value(connKey{}).(*connection)
	return c
}

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
