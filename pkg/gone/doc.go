// Package gone decides from evidence whether the holder of a lease is gone. All code that takes an address away without
// a release asks it. The callers differ only in the evidence that they can gather.
package gone
