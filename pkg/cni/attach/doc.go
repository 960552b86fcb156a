// Package attach stores, on the node, the parts of the allocator's answer for which a CNI result has no room: MAC, MTU,
// VLAN and whether a machine migrates. The IPAM plugin writes a file, and the chained plugin reads it.
package attach
