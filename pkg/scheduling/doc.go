// Package scheduling decides on which nodes pods find addresses, for the scheduler: it applies the allocator's own
// decisions to many hosts at once, and assumes addresses for pods that were placed and have not asked for theirs yet.
package scheduling
