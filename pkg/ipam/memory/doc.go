// Package memory is what the index knows: which pool serves an address, which addresses are free, and where a request
// finds its pools. An address is free in the set of the pool that serves it exactly when nothing occupies it. It is a
// digest of the objects, and is rebuilt from them at any time. Nothing here has a lock: the index has one around it.
package memory
