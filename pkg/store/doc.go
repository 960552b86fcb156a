// Package store keeps leases as BCSNetIP objects. It is the only code that writes them: every change
// is one compare-and-swap, and every write says clearly whether it was stored, was not, or may have been.
package store
