// Package wire has what the allocator's HTTP service and its callers send each other. It imports nothing of Kubernetes, so
// that a CNI plugin can be made of it.
package wire
