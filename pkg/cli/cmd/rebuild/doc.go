// Package rebuild has the command rebuild, which creates lost leases again from the reports of running pods. Package
// pkg/recovery finds missing and contradictory leases. It imports no other command.
package rebuild
