// Package importer has the command import, which takes over pools, claims and leases from other systems. Package
// pkg/importer decides what becomes of their objects. It imports no other command.
package importer
