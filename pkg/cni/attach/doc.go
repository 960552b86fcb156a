// Package attach keeps, on the node, what the allocator said about an attachment beyond its addresses: MAC, MTU, VLAN
// and whether a machine migrates. A CNI result has no room for these, so the IPAM plugin writes a file and the chained
// plugin reads it.
package attach
