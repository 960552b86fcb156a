// Package system has the readers of other systems. A reader lists that system's objects, never writes them, and yields
// rows for package importer.
package system
