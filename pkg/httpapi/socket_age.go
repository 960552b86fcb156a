package httpapi

import (
	"net/http"
	"syscall"
	"time"
)

// kernelTick bounds the error of the kernel's times, which count in ticks of at most ten milliseconds.
const kernelTick = 10 * time.Millisecond

// socketAge returns the minimum time since the last data of a request reached this machine, according to the kernel;
// zero if the kernel does not provide it. A process that was stopped, or had no processor time, finds old requests. The
// result is never too large: a request that was sent after the answer to another one stays the later one.
func socketAge(r *http.Request) time.Duration {
	if of := connectionOf(r); of != nil {
		if c, ok := of.Conn.(syscall.Conn); ok {
			return max(0, sinceData(c)-kernelTick)
		}
	}
	return 0
}
