// Package ledger keeps the leases in memory as small entries, with the tables that find them: by address, container,
// pod, host, claim and pool. An entry in a table never changes: a changed lease gets a new entry. Each table keeps one
// invariant, which its comment states, and knows no other table and no pool. The package has no lock: its callers hold
// the lock of the index.
package ledger
