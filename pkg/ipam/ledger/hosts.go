package ledger

import "net/netip"

// HostUsage counts the addresses in use, and those missing that were, by host and pool; none that counts for nothing.
type HostUsage struct{ InUse map[HostPool]int }

// HostPool is a host, and a pool that it has addresses of.
type HostPool struct {
	Host netip.Addr
	Pool string
}
