//go:build faults

package controller

import "os"

// hasty is in the build of the fault suite (test/faults) in place of the one in sound.go: with
// FAULTS_BREAK=collect in the environment.
//
//nolint:gochecknoglobals // what a process is born with
var hasty = os.Getenv("FAULTS_BREAK") == "collect"
