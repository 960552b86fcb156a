// Package node is bcsnet-node, the pod of a DaemonSet: it installs the CNI plugins on its node, maintains the files
// that they need to reach the allocator, delivers their undelivered releases, and reports the state of the node by
// metrics, events and a condition.
package node
