// Package index keeps the allocator's view of all pools and leases, behind one lock. Feed takes what the watch delivers
// and what this process writes, Leases and Pools answer questions, and Index chooses addresses for requests. The
// exported methods of these types take the lock. The packages below never take it, and never call these methods.
package index
