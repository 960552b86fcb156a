package port

import (
	"container/list"
	"errors"
	"net"
	"syscall"
)

// Conn is a connection that Connections count.
type Conn struct {
	net.Conn

	of *Connections
	// The lock of Connections guards the following fields: where the connection is counted, and whether it has ended.
	source *source
	place  *list.Element
	closed bool
}

// SetKnown records whether the caller of the connection is known. Only connections of unknown callers are counted.
func (c *Conn) SetKnown(known bool) {
	if known {
		c.of.forget(c, false)
		return
	}
	c.of.add(c)
}

// Close closes the connection and stops counting it.
func (c *Conn) Close() error {
	c.of.forget(c, true)
	return c.Conn.Close()
}

// SyscallConn returns the raw network connection.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
