// Package ipam decides: which addresses a pool holds, who holds an address, which address a request gets. It keeps all
// of it in memory, knows no Kubernetes and writes nothing; package store commits what is decided here.
//
// Read it from the ground up. A lease.Lease is one address, a Plan the addresses of a pool (plan.go). The index keeps
// them in tables, each with a rule of its own and none with a lock: lease_table.go, claim_table.go, members.go,
// catalogue.go, node_table.go, assumptions.go, missing_leases.go, host_usage.go, charge.go, progress.go. state.go holds
// the tables together. On it stand bounds.go (who may have how many) and pick.go (which address). Index (index.go) is
// the lock around them, in views: feed.go, lease_view.go, pool_view.go.
package ipam
