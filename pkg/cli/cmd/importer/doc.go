// Package importer is the command import, which takes pools, claims and leases over from other systems. What becomes of
// the objects of the released bcs-netservice-controller, pkg/netservice decides. It imports no other command.
package importer
