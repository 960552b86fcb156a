//go:build !linux

package httpapi

import (
	"syscall"
	"time"
)

// sinceData returns zero: this system does not say.
func sinceData(syscall.Conn) time.Duration { return 0 }
