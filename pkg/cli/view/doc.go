// Package view has the read models of a pool, an address, a host, a claim, a pod and the whole cluster, and the next
// commands for each. Commands and pages show the same models. Nothing here changes an object.
package view
