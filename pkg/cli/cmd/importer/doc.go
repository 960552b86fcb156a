// Package importer has the commands import, backup and restore: a restore imports our own objects from a backup.
// Package pkg/importer decides what becomes of the objects. It imports no other command.
package importer
