//go:build faults

package limiter

import "os"

// The fault suite (test/faults) builds with this file in place of failpoint_off.go. FAULTS_BREAK in the environment
// names the guard that is broken.

//nolint:gochecknoglobals // what a process is born with
var breaks = os.Getenv("FAULTS_BREAK")

func broken(guard string) bool { return breaks == guard }
