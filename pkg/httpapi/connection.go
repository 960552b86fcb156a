package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"time"
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
