//go:build faults

package controller

import (
	"os"
	"time"
)

// hurried stands in for the one of failpoint_off.go in the build of the fault suite (test/faults). With
// FAULTS_COLLECT=15s in the environment the collection waits for so long in place of a pod's grace period, and looks
// more often.
func hurried(o Options) Options {
	if after, _ := time.ParseDuration(os.Getenv("FAULTS_COLLECT")); after > 0 { // none: as it is shipped
		o.CollectAfter, o.CollectEvery = after, 2*time.Second
	}
	return o
}
