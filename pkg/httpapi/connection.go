package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// recheck is how long what was found out about a connection counts.
const recheck = time.Minute

// connection is what is known of the connection of a request, beside what the request says. Most callers keep theirs:
// what was found out once need not be found out for each request.
type connection struct {
	net.Conn
	replica  atomic.Pointer[verdict]
	identity atomic.Pointer[identity]
}

// verdict is whether a connection is one of a replica, as found at a time.
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

// setKnown records with the listener whether the caller is known. Those who are not have few connections.
func (c *connection) setKnown(known bool) {
	if counted, ok := c.Conn.(interface{ SetKnown(known bool) }); ok {
		counted.SetKnown(known)
	}
}

func connectionOf(r *http.Request) *connection {
	c, _ := r.Context().Value(connKey{}).(*connection)
	return c
}
