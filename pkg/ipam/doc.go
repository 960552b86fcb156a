// Package ipam has the words of address management: what a pool is and which addresses it has, how groups divide those
// of their parent, what a request wants, and why it is refused. They are values and pure functions, without a lock.
//
// What decides stands on them, from the ground up: ledger has the entries of the leases, freeset and block the free
// addresses and blocks, memory holds them together, pick chooses, and index is the lock around all of it. None of them
// knows Kubernetes or writes anything; package store commits what is decided here.
package ipam
