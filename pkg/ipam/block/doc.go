// Package block divides the addresses of a pool into blocks of one size. It names the blocks, and keeps which of them
// exist, which namespace owns each, and which namespaces have addresses in it. namespace.go decides which block serves
// a namespace. The number of a block stays the same as long as the grid does. The package has no lock: its callers hold
// the lock of the index.
package block
