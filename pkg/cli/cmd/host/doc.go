// Package host has the commands about the machines that draw addresses: host list, host describe, and release-host,
// which is host release, too. It imports no other command.
package host
