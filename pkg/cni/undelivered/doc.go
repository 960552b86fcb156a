// Package undelivered keeps, on the node's disk, the releases that no replica took: a DEL answers at once and a later
// call delivers them.
package undelivered
