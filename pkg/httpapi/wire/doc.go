// Package wire has the messages between the allocator's HTTP service and its callers. It imports nothing of Kubernetes,
// because CNI plugins contain it.
package wire
