// Package node is bcsnet-node, the pod of a DaemonSet: it installs the CNI plugins on its node, keeps there what they
// need to reach the allocator, delivers what they could not, and says how the node is: metrics, events and a condition.
package node
