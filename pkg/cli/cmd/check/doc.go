// Package check is the command that tries things out in the cluster: check nodes has a pod on each node get an address
// and use it. What a pod asks and what follows from its answers is in pkg/nodecheck. It imports no other command.
package check
