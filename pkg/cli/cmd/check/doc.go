// Package check has the commands that try things out in the cluster: check nodes starts a pod on each node, which gets
// an address and uses it. It imports no other command. Package nodecheck makes the plans of the pods and judges their
// reports.
package check
