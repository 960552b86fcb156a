// Package recovery makes leases again whose objects went although their holders live: from the memory of a running
// replica (Restorer), and from the addresses that pods report (Checker). It knows neither requests nor reconcilers.
package recovery
