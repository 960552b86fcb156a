package allocator

import (
	"errors"
	"net"
)

// What a connection that is cut, and one that never was, look like.
var (
	errReset   = &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
	errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
)
