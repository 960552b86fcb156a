// Package rebuild is the command that creates lost leases again from the reports of running pods. It imports no other
// command. Package recovery finds the missing leases and the contradictions.
package rebuild
