// Package importer is the command import, which takes pools, claims and leases over from other systems. Package
// pkg/importer translates the objects. It imports no other command.
package importer
