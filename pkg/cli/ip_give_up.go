package cli

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// giveUpAll gives addresses up, prints those that were, as they were before, and says what was not done. done is the word
// for it, then says more about them; it may be nil.
func (s *session) giveUpAll(ctx context.Context, leases *store.Client, o *output, held []ipam.Lease, done, reason string, then func([]ipam.Lease)) error {
	change := ipam.Change{}
	if s.dry != dryRunClient && len(held) > 0 {
		change = s.change(ctx, ipam.VerbRelease, reason)
	}
	failed := s.inBulk(ctx, held, done, func(_ int, l ipam.Lease) error {
		if s.dry == dryRunClient {
			return nil
		}
		return s.giveUp(ctx, leases, l, change)
	})
	var given []ipam.Lease
	for i, l := range held {
		if failed[i] == nil {
			given = append(given, l)
		}
	}
	if len(given) > 0 {
		s.say.done("%s %s", humanize.Plural(len(given), "address"), done)
	}
	if then != nil {
		then(given)
	}
	printed := s.printLeases(o, s.leaseColumns(false), given)
	return several{s.unfinished(ctx, done, held, failed), printed}.compact()
}

// warnRefill says of which claims that lose kept addresses the controller takes others at once, because they take
// theirs before pods ask. Claims that are no more, or not for one's eyes, are passed over.
func (s *session) warnRefill(ctx context.Context, held []ipam.Lease) {
	lose := map[string]bool{}
	for _, l := range held {
		if l.IsRetained() {
			lose[l.Claim] = true
		}
	}
	if len(lose) == 0 {
		return
	}
	api, err := s.claims()
	var all []ipClaim
	if err == nil {
		all, err = api.few(ctx, slices.Sorted(maps.Keys(lose)))
	}
	if err != nil {
		if f, ok := errors.AsType[*failure](err); !ok || f.reason != ipam.ReasonForbidden {
			s.say.warn("it is unknown whether the controller takes other addresses for %s: %v", humanize.OneOr(len(lose), "the claim", "the claims"), err)
		}
		return
	}
	var names []string
	for _, c := range all {
		if lose[c.name()] && c.Spec.Preallocate && c.DeletionTimestamp == nil {
			names = append(names, c.name())
		}
	}
	if n := len(names); n > 0 {
		s.say.warn("%s %s %s %s addresses before pods ask: the controller takes others at once", humanize.OneOr(n, "claim", "claims"),
			humanize.List(names), humanize.OneOr(n, "takes", "take"), humanize.OneOr(n, "its", "their"))
	}
}

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
