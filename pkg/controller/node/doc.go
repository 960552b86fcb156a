// Package node keeps what is known of the cluster's nodes: which addresses they have and which hosts are away (Nodes).
// On the leader it publishes on each node for how many pods there are addresses (Capacity). It knows no pod and decides
// about no lease.
package node
