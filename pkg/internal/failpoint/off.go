//go:build !faults

package failpoint

// Broken reports whether one of the guards is broken. None is in a build without the tag faults, and the compiler
// removes the call.
func Broken(...string) bool { return false }

// Kill does nothing in a build without the tag faults.
func Kill(string) {}
