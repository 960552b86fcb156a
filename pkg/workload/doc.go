// Package workload finds pods and their workloads, and reads what the annotations of both say about the address
// (Policy).
//
// Annotations is the list of all understood annotations, including those of other systems. Each annotation is read into
// a parsed value, a policy builder collects the values field by field, nearest object first, and resolve makes one
// Policy of them or refuses. Owners finds workloads by watching metadata.
package workload

//go:generate go test -run ^TestAnnotationsAreDocumented$ -update .
