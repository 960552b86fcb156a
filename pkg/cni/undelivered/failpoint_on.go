//go:build faults

package undelivered

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// step stands in for the one of failpoint_off.go in the build of the fault suite: it kills the process at a step that
// FAULTS_BREAK=ipam-STEP in the environment names, as kill -9 or a power cut would.
func step(name string) {
	if failpoint.Broken("ipam-" + name) {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {} // until the signal is there
	}
}
