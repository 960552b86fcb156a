// Package ledger has the leases in memory, each as an entry of few bytes, and the tables that find them: by address,
// container, pod, host, claim and pool. An entry in a table never changes: another one takes its place. Each table
// keeps one rule, which its comment says, and knows no other table and no pool. None has a lock: the index has one
// around all of them.
package ledger
