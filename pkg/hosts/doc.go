// Package hosts knows the machines of a cluster: which addresses are a Node's, and what its Node says of the machine.
// The code that authenticates callers, the code that takes addresses back, and the commands use it.
package hosts
