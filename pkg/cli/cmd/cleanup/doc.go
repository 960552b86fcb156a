// Package cleanup is the command that ends the leases of holders that are gone: of a network, a pool, a host, or one
// endpoint. Package gone decides which those are. It imports no other command.
package cleanup
