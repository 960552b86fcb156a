package leasing

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// LeftAlone is the reason why an address is not released after all. It is not a failure.
type LeftAlone string

func (l LeftAlone) Error() string { return string(l) }

// GiveUp releases addresses by give, prints the released ones in their former state, and reports the others. done is
// the participle for messages. tell prints the result; it may be nil.
func GiveUp(
	ctx context.Context, s *app.App, o *printer.Output, held []lease.Lease, done string,
	give func(int, lease.Lease) error, tell func([]lease.Lease),
) error {
	failed := resource.InBulk(ctx, s, held, done, give)
	given, tried, errs := held, held, failed // of many, without a copy
	if slices.ContainsFunc(failed, func(err error) bool { return err != nil }) {
		given, tried, errs = outcomes(s, held, done, failed)
	}
	if tell != nil {
		tell(given)
	} else if len(given) > 0 {
		s.Say.Done("%s %s", humanize.Plural(len(given), "address"), done)
	}
	printed := resource.PrintLeases(s, o, resource.LeaseColumns(s, false), given)
	return app.Several{resource.Unfinished(ctx, done, tried, errs), printed}.Compact()
}

// outcomes returns the released addresses, and those that were not left alone with their errors. It reports the others.
func outcomes(
	s *app.App, held []lease.Lease, done string, failed []error,
) (given, tried []lease.Lease, errs []error) {
	left := 0
	for i, l := range held {
		if alone, ok := errors.AsType[LeftAlone](failed[i]); ok {
			if left++; left <= MaxLines {
				s.Say.Note("%s is not %s: %s", l.Addr, done, alone)
			}
			continue
		}
		tried, errs = append(tried, l), append(errs, failed[i])
		if failed[i] == nil {
			given = append(given, l)
		}
	}
	if left > MaxLines {
		s.Say.Note("  and %s are not", humanize.Plural(left-MaxLines, "more lease"))
	}
	return given, tried, errs
}

// ReleaseBy returns the history entry of a release of n addresses. With --dry-run=client it has no author.
func ReleaseBy(ctx context.Context, s *app.App, n int, reason string) lease.Change {
	if s.DryRun == app.DryRunClient || n == 0 {
		return lease.Change{Verb: lease.VerbRelease, Reason: reason}
	}
	return s.Change(ctx, lease.VerbRelease, reason)
}

// WarnRefill names the claims for which the controller will take new addresses at once, because they lose kept ones and
// preallocate. It skips claims that are gone or that the user may not read.
func WarnRefill(ctx context.Context, s *app.App, held []lease.Lease) {
	lose := map[string]bool{}
	for _, l := range held {
		if l.IsRetained() {
			lose[l.Claim] = true
		}
	}
	if len(lose) == 0 {
		return
	}
	api, err := resource.NewClaims(s)
	var all []resource.Claim
	if err == nil {
		all, err = api.Few(ctx, slices.Sorted(maps.Keys(lose)))
	}
	if err != nil {
		if f, ok := errors.AsType[*app.Failure](err); !ok || f.Reason != ipam.ReasonForbidden {
			s.Say.Warn("it is unknown whether the controller takes other addresses for %s: %v",
				humanize.OneOr(len(lose), "the claim", "the claims"), err)
		}
		return
	}
	var names []string
	for _, c := range all {
		if lose[c.FullName()] && c.Spec.Preallocate && c.DeletionTimestamp == nil {
			names = append(names, c.FullName())
		}
	}
	if n := len(names); n > 0 {
		s.Say.Warn("%s %s %s %s addresses before pods ask: the controller takes others at once",
			humanize.OneOr(n, "claim", "claims"),
			humanize.List(names), humanize.OneOr(n, "takes", "take"), humanize.OneOr(n, "its", "their"))
	}
}

// Giving says how an address is released.
type Giving struct {
	// Free also takes the address from the claim that would keep it.
	Free bool
	// Side ends only the attachment from which the lease is seen.
	Side bool
}

// GiveUpOne releases a held address, or frees a kept one, unless it has changed since it was read. With
// --dry-run=client it sends nothing.
func GiveUpOne(
	ctx context.Context, s *app.App, leases *store.Client, was lease.Lease, c lease.Change, giving Giving,
) error {
	give, still := allocator.ReleaseLease, func(now lease.Lease) bool {
		_, same := was.From(func(then lease.Lease) bool { return sameHolder(now, then) })
		return same
	}
	if giving.Side {
		still = func(now lease.Lease) bool { return sameHolder(now, was) }
	}
	if giving.Free {
		give = allocator.FreeLease
	}
	if was.State == lease.Reserved {
		give, still = allocator.FreeLease, func(now lease.Lease) bool {
			return now.State == lease.Reserved && now.Claim == was.Claim && now.Updated.Equal(was.Updated)
		}
	}
	if s.DryRun == app.DryRunClient {
		return nil
	}
	gone, err := give(ctx, leases, was, c, still)
	if err != nil || gone {
		return err
	}
	return changedMeanwhile(ctx, s, leases, was)
}

// sameHolder reports whether an address still has the same holder.
func sameHolder(now, then lease.Lease) bool {
	return now.State == then.State && now.ContainerID == then.ContainerID && now.PodUID == then.PodUID &&
		now.Owner == then.Owner && now.StartedAt.Equal(then.StartedAt)
}

// changedMeanwhile returns the error for an address that was left alone because somebody else holds it now; nil if it
// is free.
func changedMeanwhile(ctx context.Context, s *app.App, leases *store.Client, was lease.Lease) error {
	now, err := resource.ReadAddresses(ctx, s, leases, []netip.Addr{was.Addr})
	switch {
	case err != nil:
		return err
	case now[0].State == lease.Available:
		return nil
	case was.IsQuarantined():
		return app.Refuse(app.ReasonLeaseChanged, "it is no longer quarantined, and not free either").
			WithHint("see who has it now: bcsnetctl ip describe %s", was.Addr)
	case was.State == lease.Reserved:
		return app.Refuse(app.ReasonLeaseChanged, "it is no longer kept for claim %s", was.Claim).
			WithHint("see who has it now: bcsnetctl ip describe %s", was.Addr)
	case now[0].State == lease.Reserved:
		return app.Refuse(app.ReasonLeaseChanged, "%s gave it up meanwhile, and it is reserved now", was.Who()).
			WithHint("see why: bcsnetctl ip describe %s", was.Addr)
	}
	for side := range now[0].Attachments() {
		if side.Where() == was.Where() {
			return app.Refuse(app.ReasonLeaseChanged, "%s has asked for it again meanwhile", was.Where()).
				WithHint("see what it has: bcsnetctl ip describe %s", was.Addr)
		}
	}
	return app.Refuse(app.ReasonLeaseChanged, "it has changed hands meanwhile, from %s to %s", was.Where(),
		now[0].Where()).
		WithHint("see who has it now: bcsnetctl ip describe %s", was.Addr)
}

// MaxLines bounds the leases that are listed before a question.
const MaxLines = 20

// Ending is a lease that will be released, as the user reads it.
type Ending struct {
	Text string
	// Grave: somebody may use the address. Loser is the live pod that loses it; may be empty.
	Grave bool
	Loser string
}

// Announce lists the leases that will be released. After MaxLines it counts them, but still names all live pods: nobody
// loses an address without being named.
func Announce(s *app.App, all []Ending) {
	for _, e := range all[:min(len(all), MaxLines)] {
		if e.Grave {
			s.Say.Warn("%s", e.Text)
		} else {
			s.Say.Start("%s", e.Text)
		}
	}
	more := len(all) - MaxLines
	if more <= 0 {
		return
	}
	s.Say.Note("  and %s", humanize.Plural(more, "more lease"))
	var losers []string
	for _, e := range all[MaxLines:] {
		if e.Loser != "" && !slices.Contains(losers, e.Loser) {
			losers = append(losers, e.Loser)
		}
	}
	if n := len(losers); n > 0 {
		s.Say.Warn("among them addresses of %s: %s", humanize.OneOr(n, "a pod that lives", humanize.Plural(n, "pod")+
			" that live"), strings.Join(losers, ", "))
	}
}
