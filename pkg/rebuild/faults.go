//go:build faults

package rebuild

import "os"

// restores is in the build of the fault suite (test/faults) in place of the one in sound.go: with FAULTS_BREAK=restore in
// the environment lost leases stay lost.
//
//nolint:gochecknoglobals // what a process is born with
var restores = os.Getenv("FAULTS_BREAK") != "restore"
