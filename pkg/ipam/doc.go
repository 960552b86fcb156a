// Package ipam decides: which addresses a pool holds, who holds an address, which address a request gets. It keeps all
// of it in memory, knows no Kubernetes and writes nothing; package store commits what is decided here.
//
// Read it from the ground up. A lease.Lease is one address, a Plan the addresses of a pool (plan.go). Package ledger has
// the entries of the leases and their tables, packages freeset and block the free addresses and blocks of a pool; none
// of them has a lock. state.go holds the tables together, with catalogue.go for the pools and node_table.go. On it stand
// bounds.go (who may have how many) and pick.go (which address). Index (index.go) is the lock around them, in views:
// feed.go, lease_view.go, pool_view.go.
package ipam
