// Package allocator gives addresses out and takes them back. It is the protocol between what package
// ipam decides and what package store commits; the HTTP service and the command line share it.
package allocator
