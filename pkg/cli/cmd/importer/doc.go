// Package importer is the command import, which takes pools, claims and leases over from other systems. What becomes of
// their objects, pkg/importer decides. It imports no other command.
package importer
