// Package recovery creates lost leases of living holders again: from the memory of a running replica (Restorer), and
// from the addresses that pods report (Checker). It knows neither requests nor reconcilers.
package recovery
