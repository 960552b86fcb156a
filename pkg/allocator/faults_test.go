package allocator

import (
	"errors"
	gonet "net"
)

// What a connection that is cut, and one that never was, look like.
var (
	errReset   = &gonet.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
	errRefused = &gonet.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
)
