// Package wait is the command that waits for a state of a pool, claim or address. It imports no other command.
package wait
