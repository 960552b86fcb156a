// Package check has the command check, which tests the cluster with pods of its own: check nodes has a pod on each node
// get an address and use it. What a pod asks and what follows from its answers is in pkg/nodecheck. It imports no other
// command.
package check
