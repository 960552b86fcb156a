// Package usage has the command that shows the taken addresses of a pool as a map, and who holds how many as a table.
// It imports no other command.
package usage
