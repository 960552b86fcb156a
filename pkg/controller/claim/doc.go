// Package claim reconciles claims on the leader: it makes those that annotations ask for, preallocates addresses,
// returns kept addresses that are no longer needed, and publishes status and events. Package claim below pkg decides
// what is due. This package reads, writes, and remembers findings in between (States).
package claim
