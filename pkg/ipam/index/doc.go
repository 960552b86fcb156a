// Package index is the memory of the allocator behind one lock. Feed takes what the watch delivers and what this
// process writes, Leases and Pools answer questions, and Index chooses addresses for requests. Their exported methods
// take the lock. Nothing below them does, and nothing below them calls an exported method of Index or its parts.
package index
