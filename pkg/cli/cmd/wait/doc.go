// Package wait is the command that waits until a pool, a claim or an address is as somebody needs it. It imports no
// other command.
package wait
