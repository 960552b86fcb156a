// Package memory has the state of the index: which pool serves an address, which addresses are free, and in which pools
// a request looks for one. An address is free in the set of the pool that serves it if and only if nothing occupies it
// and it does not cool. The state is derived from the objects and can be rebuilt from them at any time. The package has
// no lock: its callers hold the lock of the index.
package memory
