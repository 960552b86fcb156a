package ledger

import "net/netip"

// HostUsage counts, by host and pool, the addresses in use and the missing addresses that were in use. No count is 0.
type HostUsage struct{ InUse map[HostPool]int }

// HostPool is a host, and a pool that it has addresses of.
type HostPool struct {
	Host netip.Addr
	Pool string
}
