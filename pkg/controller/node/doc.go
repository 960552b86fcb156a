// Package node knows the nodes of the cluster: which addresses they have and which hosts are away (Nodes). On the
// leader it publishes on each for how many pods there are addresses (Capacity). It knows no pod and decides about no
// lease.
package node
