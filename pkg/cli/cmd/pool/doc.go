// Package pool has the commands for pools. It imports no other command: pool usage, which package usage implements, is
// passed in.
package pool
