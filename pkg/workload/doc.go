// Package workload finds pods and their workloads, and reads their annotations about addresses (Policy).
//
// Annotations is the list of all understood annotations, including those of other systems. Each annotation is parsed
// into a value, a policy builder collects the values field by field, nearest object first, and resolve combines them
// into one Policy or refuses. Owners finds workloads by watching metadata.
package workload

//go:generate go test -run ^TestAnnotationsAreDocumented$ -update .
