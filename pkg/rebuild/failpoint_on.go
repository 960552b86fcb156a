//go:build faults

package rebuild

import "os"

// restores stands in for the constant of failpoint_off.go in the build of the fault suite (test/faults). With
// FAULTS_BREAK=restore in the environment lost leases stay lost.
//
//nolint:gochecknoglobals // what a process is born with
var restores = os.Getenv("FAULTS_BREAK") != "restore"
