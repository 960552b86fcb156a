package ipam

import "net/netip"

// missingLeases has the addresses that are missing. None is in both of its maps.
type missingLeases struct {
	// missing are the addresses whose object went while they were held.
	gone map[netip.Addr]*record
	// behind are the addresses whose object names an earlier holder than the entry does.
	behind map[netip.Addr]struct{}
}

// newMissingLeases returns a table in which nothing is missing.
func newMissingLeases() missingLeases {
	return missingLeases{gone: map[netip.Addr]*record{}, behind: map[netip.Addr]struct{}{}}
}
