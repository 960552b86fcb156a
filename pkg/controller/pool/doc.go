// Package pool reconciles pools on the leader: the objects of their addresses, their finalizer, status and events. It
// knows no claim. The index decides which pool serves an address.
package pool
