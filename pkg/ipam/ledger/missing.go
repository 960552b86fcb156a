package ledger

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Missing has the addresses that are missing. No address is in both of its maps.
type Missing struct {
	// Gone are the addresses whose object was deleted or emptied while they were held, with the entry of that time.
	Gone map[netip.Addr]*Record
	// Behind are the addresses whose object names an earlier holder than their entry does.
	Behind map[netip.Addr]struct{}
}

// NewMissing returns a table in which nothing is missing.
func NewMissing() Missing {
	return Missing{Gone: map[netip.Addr]*Record{}, Behind: map[netip.Addr]struct{}{}}
}

// AnyOf reports whether the object of a lease that names a pool has gone while somebody had the address.
func (x *Missing) AnyOf(pool string) bool {
	for _, r := range x.Gone {
		if r.Params.Value().Pool == pool {
			return true
		}
	}
	return false
}

// Rewritten reports whether a list that is not older than an entry shows that the store was put back: a list is never
// behind its own version, and a version is written once. The entry of a later holder has the version of another's
// object.
func (x *Missing) Rewritten(r *Record, l lease.Lease) bool {
	_, behind := x.Behind[l.Addr]
	return l.Version < r.Version || l.Version == r.Version && !behind && Nanos(l.Updated) != r.Updated
}
