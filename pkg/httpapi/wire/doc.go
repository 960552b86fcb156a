// Package wire has what the allocator's HTTP service and its callers send each other. It imports nothing of Kubernetes:
// CNI plugins are made of it.
package wire
