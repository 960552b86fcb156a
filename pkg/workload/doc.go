// Package workload knows pods: who asks for an address and whether it still does, which workload a pod belongs to,
// and what the annotations of both say about the address (Policy).
//
// Annotations is the one list of what is understood, the dialects of other systems among it. Each annotation is
// read to a parsed value, a policy builder collects them field by field, nearest object first, and resolve makes one
// Policy of them or says why it cannot be. Owners finds workloads by watching metadata.
package workload

//go:generate go test -run ^TestAnnotationsAreDocumented$ -update .
