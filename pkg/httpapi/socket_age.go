package httpapi

import (
	"net/http"
	"syscall"
	"time"
)

// kernelTick is how far off the kernel's times may be: they count in ticks, of ten milliseconds at most.
const kernelTick = 10 * time.Millisecond

// socketAge returns how long ago at least the last of a request reached this machine, as the kernel knows it. Where the
// kernel does not say, it is zero. A process that was stopped, or had no processor, finds requests that are old. No
// request is made older than it is: one that was sent after the answer to another stays the later one.
func socketAge(r *http.Request) time.Duration {
	if of := connectionOf(r); of != nil {
		if c, ok := of.Conn.(syscall.Conn); ok {
			return max(0, sinceData(c)-kernelTick)
		}
	}
	return 0
}
