// Package pool has the commands for pools: which addresses there are, and which hosts draw from them. It imports no
// other command; pool usage, which belongs to usage, is handed in.
package pool
