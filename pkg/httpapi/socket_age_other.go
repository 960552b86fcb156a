//go:build !linux

package httpapi

import (
	"syscall"
	"time"
)

// sinceData returns zero, because this system does not provide the time.
func sinceData(syscall.Conn) time.Duration { return 0 }
