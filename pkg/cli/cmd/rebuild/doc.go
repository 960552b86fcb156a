// Package rebuild is the command that creates lost leases again from the reports of running pods. Package recovery
// finds the missing leases and the contradictions. It imports no other command.
package rebuild
