//go:build race

package ui

// racing reports whether the race detector is on.
const racing = true
