// Package hosts knows the machines of a cluster: which addresses are a Node's, and what its Node says of the machine.
// Everybody asks it: those who let callers in, those who take addresses back, and the commands.
package hosts
