package httpapi

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sinceData returns the time since data last came on a TCP connection, to a few milliseconds.
func sinceData(c syscall.Conn) (since time.Duration) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // a closed connection has no data
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			since = time.Duration(info.Last_data_recv) * time.Millisecond
		}
	})
	return since
}
