// Package pool reconciles pools on the leader: the objects of their addresses, their finalizer, status and events. It
// knows no claim. Which pool serves an address, the index decides.
package pool
