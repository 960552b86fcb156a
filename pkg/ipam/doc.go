// Package ipam has the values of address management: pools and their plans, the groups of a parent pool, requests and
// refusals. Its functions are pure and take no lock.
//
// The packages below it decide on these values. ledger keeps the entries of the leases. freeset and block keep which
// addresses and blocks are free. memory combines them, pick chooses addresses, and index guards all of it with one
// lock. None of them knows Kubernetes or writes anything: package store writes what they decide.
package ipam
