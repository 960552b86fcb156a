//go:build faults

package store

import (
	"os"
	"time"
)

// localTime replaces the function of failpoint_off.go in the build of the fault suite (test/faults). With
// FAULTS_CLOCK=2h in the environment, the clock of this machine is two hours ahead.
func localTime() time.Time {
	ahead, _ := time.ParseDuration(os.Getenv("FAULTS_CLOCK")) // zero leaves the clock right
	return time.Now().Add(ahead)
}
