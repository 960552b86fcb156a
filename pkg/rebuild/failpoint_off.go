//go:build !faults

package rebuild

// restores: a lost lease is made again. A build with the tag faults does without on purpose; here the compiler leaves
// nothing of it.
const restores = true
