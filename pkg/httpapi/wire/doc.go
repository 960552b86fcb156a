// Package wire has what the allocator's HTTP service and its callers send each other. It imports nothing of Kubernetes,
// because CNI plugins contain it.
package wire
