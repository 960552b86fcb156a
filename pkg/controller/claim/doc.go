// Package claim reconciles claims on the leader: it makes those that annotations ask for, preallocates addresses, gives
// back what is kept and needed no more, and publishes status and events. Package claim below pkg decides what is due.
// This one has the reads, the writes, and what is remembered in between (States).
package claim
