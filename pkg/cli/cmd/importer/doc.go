// Package importer is the command import, which takes pools, claims and leases over from other systems. It imports no
// other command. Package pkg/importer translates the objects.
package importer
