// Package allocator gives addresses out and takes them back. It is the protocol between what package
// ipam decides and what package store commits; the HTTP service and the command line share it.
//
// An ADD is an attempt (attempt.go) that allocate.go takes through its phases: resolve, then lookup, handover, pick,
// commit, confirm and conclude, which begin anew where the index turns out to be behind. A DEL is in release.go, and
// leaves a tombstone. Run, beside the requests, releases what a DEL or a duplicate left over.
//
// The package knows no HTTP and reads no Kubernetes objects: pods and their constraints come through interfaces.
package allocator
