//go:build faults

package controller

import (
	"os"
	"time"
)

// hurried replaces the function of failpoint_off.go in the build of the fault suite (test/faults). With
// FAULTS_COLLECT=15s in the environment, the collection waits for that time instead of a pod's grace period, and checks
// more often.
func hurried(o Options) Options {
	if after, _ := time.ParseDuration(os.Getenv("FAULTS_COLLECT")); after > 0 { // zero leaves the shipped value
		o.CollectAfter, o.CollectEvery = after, 2*time.Second
	}
	return o
}
