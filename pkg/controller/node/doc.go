// Package node has the data about the cluster's nodes: their addresses, and which hosts are away (Nodes). On the leader
// it publishes on each node the number of pods for which there are addresses (Capacity). It knows no pod and decides
// about no lease.
package node
