// Package usage has the command that shows which addresses of a pool are taken, as a map, and who takes how much, as a
// table. It imports no other command.
package usage
