// Package usage has the command usage, which shows the addresses of a pool as a map, and their users as a table. It
// imports no other command.
package usage
