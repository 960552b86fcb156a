// Package host has the commands about machines that draw addresses: host list, host describe, and release-host, also
// called host release. It imports no other command.
package host
