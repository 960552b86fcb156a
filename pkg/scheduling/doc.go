// Package scheduling decides on which nodes pods find addresses, for the scheduler: it asks the allocator's own decisions
// about many hosts at once, and remembers which addresses are as good as given to pods that were placed and have not
// asked for theirs yet.
package scheduling
