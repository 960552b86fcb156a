//go:build faults

package failpoint

import (
	"os"
	"slices"
	"syscall"
)

//nolint:gochecknoglobals // set when the process starts, and never again
var breaks = os.Getenv("FAULTS_BREAK")

// Broken reports whether one of the guards is broken: the one that FAULTS_BREAK in the environment names.
func Broken(guards ...string) bool { return slices.Contains(guards, breaks) }

// Kill ends the process like kill -9 if FAULTS_BREAK in the environment names this step of its work.
func Kill(step string) {
	if Broken(step) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // this process can signal itself
		select {}                                      // the signal comes
	}
}
