// Package gc collects garbage on the leader: it takes addresses back whose pod is gone and that no DEL released.
// Package gone decides whether nobody has an address any more. This package gathers the evidence, pass by pass, and has
// the circuit breaker and the writes.
package gc
