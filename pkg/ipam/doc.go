// Package ipam decides: which addresses a pool holds, who holds an address, which address a request
// gets. It keeps all of it in memory, knows no Kubernetes and writes nothing; package store commits
// what is decided here.
package ipam
