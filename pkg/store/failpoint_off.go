//go:build !faults

package store

import "time"

// localTime returns the time of this machine's clock. A build with the tag faults can change it (failpoint_on.go).
func localTime() time.Time { return time.Now() }
