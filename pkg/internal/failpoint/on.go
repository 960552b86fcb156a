//go:build faults

package failpoint

import (
	"os"
	"slices"
	"syscall"
)

//nolint:gochecknoglobals // set when the process starts, and never again
var breaks = os.Getenv("FAULTS_BREAK")

// Broken reports whether one of the guards is out of order: the one that FAULTS_BREAK in the environment names.
func Broken(guards ...string) bool { return slices.Contains(guards, breaks) }

// Kill ends the process at a step of its work that FAULTS_BREAK in the environment names, as kill -9 does.
func Kill(step string) {
	if Broken(step) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // this process can signal itself
		select {}                                      // the signal comes
	}
}
