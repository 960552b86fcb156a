// Package rebuild is the command that makes lost leases again from what running pods report. What is missing, and what
// contradicts what, pkg/recovery finds out. It imports no other command.
package rebuild
