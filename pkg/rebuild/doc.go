// Package rebuild makes leases again whose objects went although their holders live: from the memory of
// a running replica, and from what pods report.
package rebuild
