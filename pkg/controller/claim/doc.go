// Package claim reconciles claims on the leader: it creates the claims that annotations request, preallocates
// addresses, returns kept addresses that are no longer needed, and publishes status and events. Package claim below pkg
// decides; this package reads, writes, and remembers findings in between (States).
package claim
