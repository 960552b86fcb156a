//go:build !linux

package httpapi

import (
	"syscall"
	"time"
)

// sinceData is not to be had.
func sinceData(syscall.Conn) time.Duration { return 0 }
