//go:build !faults

package controller

// hasty is a collector that takes an address back at the first look, on the word of its caches. A build with the
// tag faults has it on purpose; here the compiler leaves nothing of it.
const hasty = false
