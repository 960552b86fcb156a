package allocator

import (
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// networkGC is a NetworkGC on its way.
type networkGC struct {
	host    netip.Addr
	network string
	listed  map[Attachment]struct{}
	// Only leases that were asked for before askedBefore, and bound before boundBefore, may be released.
	askedBefore, boundBefore time.Time
	// latest is when the last listed lease of this network was bound; zero if none is listed.
	latest time.Time
}

// lists reports whether a lease, as one of its attachments has it, is of this network and of a listed container. A
// listed container counts, too, if a newer one of its pod has taken the lease over.
func (g networkGC) lists(l lease.Lease) bool {
	return g.has(l) && l.Has(func(id string) bool {
		_, ok := g.listed[Attachment{id, l.IfName}]
		return ok
	})
}

// has reports whether a lease, as one of its attachments has it, is of this network.
func (g networkGC) has(l lease.Lease) bool {
	return l.State == lease.Active && l.Host == g.host && l.ContainerID != "" && l.CNINetwork != "" &&
		l.CNINetwork == g.network
}

// unlisted reports whether a lease, as one of its attachments has it, is of this network, missing in the list, and old
// enough to be there.
func (g networkGC) unlisted(l lease.Lease) bool {
	return g.has(l) && !g.lists(l) && l.StartedAt.Before(g.askedBefore) && l.Updated.Before(g.boundBefore)
}

// kept returns the attachments of this network that are neither listed nor released.
func (g networkGC) kept(all, released []lease.Lease) (kept []Attachment) {
	kept = []Attachment{}
	freed := make(map[netip.Addr]bool, len(released))
	for _, l := range released {
		freed[l.Addr] = true
	}
	for _, l := range all {
		of, unlisted := l.From(func(l lease.Lease) bool { return g.has(l) && !g.lists(l) })
		if unlisted && !freed[l.Addr] {
			kept = append(kept, Attachment{of.ContainerID, of.IfName})
		}
	}
	return kept
}

// unlistedSince returns a function that reports what unlisted does, and only for attachments that the lease has now.
func (g networkGC) unlistedSince(l lease.Lease) func(lease.Lease) bool {
	return func(now lease.Lease) bool {
		_, known := l.From(func(then lease.Lease) bool {
			return then.ContainerID == now.ContainerID && then.IfName == now.IfName &&
				then.StartedAt.Equal(now.StartedAt)
		})
		return known && g.unlisted(now)
	}
}
