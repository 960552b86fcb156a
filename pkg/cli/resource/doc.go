// Package resource reads and changes the objects that commands are about: pools, addresses, claims, hosts, pods and
// events. It says in words what the API server answered, completes names, and parses lists of addresses. It knows no
// command.
package resource
