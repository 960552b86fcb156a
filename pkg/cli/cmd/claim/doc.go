// Package claim has the commands for claims, which keep addresses for workloads. It imports no other command.
package claim
