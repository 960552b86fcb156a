package cli

import (
	"context"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// giveUp releases an address that is held, or frees one that is kept, unless that has changed since it was read.
func (s *session) giveUp(ctx context.Context, leases *store.Client, was ipam.Lease, c ipam.Change) error {
	give, still := allocator.ReleaseLease, func(now ipam.Lease) bool { return sameHolder(now, was) }
	if was.State == ipam.Reserved {
		give, still = allocator.FreeLease, func(now ipam.Lease) bool {
			return now.State == ipam.Reserved && now.Claim == was.Claim && now.Updated.Equal(was.Updated)
		}
	}
	gone, err := give(ctx, leases, was, c, still)
	if err != nil || gone {
		return err
	}
	return s.changed(ctx, leases, was)
}

// sameHolder says whether an address is held as it was when it was looked at.
func sameHolder(now, then ipam.Lease) bool {
	return now.State == then.State && now.ContainerID == then.ContainerID && now.PodUID == then.PodUID &&
		now.Owner == then.Owner && now.StartedAt.Equal(then.StartedAt)
}

// changed says why an address was left alone: it is free, or somebody else has got it meanwhile.
func (s *session) changed(ctx context.Context, leases *store.Client, was ipam.Lease) error {
	now, err := s.read(ctx, leases, []netip.Addr{was.Addr})
	switch {
	case err != nil:
		return err
	case now[0].State == ipam.Available:
		return nil
	case was.State == ipam.Reserved:
		return refuse(reasonLeaseChanged, "it is not kept for claim %s any more", was.Claim).
			withHint("see who has it now: bcsnetctl ip describe %s", was.Addr)
	case now[0].State == ipam.Reserved:
		return refuse(reasonLeaseChanged, "%s gave it up meanwhile, and it is reserved now", was.Who()).
			withHint("see why: bcsnetctl ip describe %s", was.Addr)
	}
	return refuse(reasonLeaseChanged, "it has changed hands meanwhile, from %s to %s", was.Where(), now[0].Where()).
		withHint("see who has it now: bcsnetctl ip describe %s", was.Addr)
}
