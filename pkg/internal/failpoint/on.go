//go:build faults

package failpoint

import (
	"os"
	"slices"
)

//nolint:gochecknoglobals // set when the process starts, and never again
var breaks = os.Getenv("FAULTS_BREAK")

// Broken reports whether one of the guards is out of order: the one that FAULTS_BREAK in the environment names.
func Broken(guards ...string) bool { return slices.Contains(guards, breaks) }
