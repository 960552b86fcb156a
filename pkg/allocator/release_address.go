package allocator

import (
	"context"
	"errors"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// ReleaseAddress gives up one address if the given container or owner holds it. An address that nobody holds is not an
// error (released false). One on another host than those of onHosts is held by somebody else; nil is for all hosts.
func (d *Releaser) ReleaseAddress(
	ctx context.Context, addr netip.Addr, containerID, owner string, onHosts []netip.Addr,
) (l lease.Lease, released bool, err error) {
	if err := ownerOfHost(owner, onHosts); err != nil {
		return l, false, err
	}
	l, err = d.engine.leases.Get(ctx, addr)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if _, known := d.engine.index.Pools.PoolOf(addr); !known {
			return l, false, ipam.RefuseFacts(ipam.ReasonAddressNotInPool,
				explain.Facts{Kind: explain.AddressInNoPool, Address: addr})
		}
		return l, false, nil
	case err != nil:
		return l, false, readFailed(err)
	case l.State == lease.Available:
		return l, false, nil
	}
	mine := heldFor(containerID, owner, onHosts)
	from, ok := l.From(mine)
	if !ok {
		return l, false, notHeld(l)
	}
	released, err = ReleaseLease(ctx, d.engine.leases, from, lease.Change{}, mine)
	return from, released, err
}

// heldFor returns what reports whether a container or an owner has a lease on one of the hosts.
func heldFor(containerID, owner string, onHosts []netip.Addr) func(lease.Lease) bool {
	return func(l lease.Lease) bool {
		return l.State == lease.Active && within(onHosts, l.Host) &&
			(containerID != "" && l.ContainerID == containerID || owner != "" && l.Owner == owner)
	}
}

// FreesAddress reports by the index whether ReleaseAddress frees an address.
func (d *Releaser) FreesAddress(addr netip.Addr, containerID, owner string, onHosts []netip.Addr) bool {
	l, ok := d.engine.index.Leases.Get(addr)
	if !ok {
		return false
	}
	_, ok = l.From(heldFor(containerID, owner, onHosts))
	return ok
}
