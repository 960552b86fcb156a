// Package wait has the command wait, which waits for a state of a pool, a claim or an address. It imports no other
// command.
package wait
