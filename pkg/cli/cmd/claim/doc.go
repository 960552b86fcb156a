// Package claim has the commands for claims: the addresses that are kept for a workload, and for how long. It imports
// no other command.
package claim
