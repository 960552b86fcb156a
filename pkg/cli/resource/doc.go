// Package resource reads and changes the objects of commands: pools, addresses, claims, hosts, pods and events. It
// explains the API server's errors, completes names, and parses lists of addresses. It knows no command.
package resource
