// Package allocator gives addresses out and takes them back. It is the protocol between what package
// ipam decides and what package store commits; the HTTP service and the command line share it.
//
// Five jobs share an engine (engine.go): the index, the store, the locks and the tombstones. The Adder takes an ADD, an
// attempt (attempt.go), through its phases (allocate.go): resolve, then lookup, handover, pick, commit, confirm and
// conclude, which begin anew if the index turns out to be behind. The Releaser answers a DEL and leaves a tombstone.
// The Repairer, beside the requests, releases what a DEL or a duplicate left over. The Stocker takes addresses and
// blocks before a pod asks. The Reporter judges conflict reports. Which of two leases stays, stays.go says for all of
// them.
//
// The package knows no HTTP and reads no Kubernetes objects: pods and their constraints come through interfaces.
package allocator
