package host

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

const hintRest = "run it again: it does the rest"

// releaseRun is one run of release-host: the released addresses and the state of each host.
type releaseRun struct {
	*releaseVerb
	leases   *store.Client
	released []lease.Lease
	// unread is the error of the latest list of addresses; nil if it succeeded.
	unread error
	// at has the progress of each host that was examined.
	at map[netip.Addr]*hostState
	// refused has the refusals. If there are any, nothing was released.
	refused app.Several
}

// hostState is the progress on one host.
type hostState struct {
	// held counts the addresses at the latest list, gone those that were released.
	held, gone int
	// err is why that was not all.
	err error
	// quiet counts the consecutive lists that showed no address.
	quiet int
	// turn is when the first release on the host began, by the API server's clock.
	turn time.Time
}

// state returns the progress of a host. The first call sets its turn.
func (r *releaseRun) state(h netip.Addr) *hostState {
	s := r.at[h]
	if s == nil {
		s = &hostState{turn: r.leases.Now()}
		r.at[h] = s
	}
	return s
}

// first releases the addresses of the hosts one after the other, and returns the number of hosts that it tried. If one
// host is refused, it releases nothing.
func (r *releaseRun) first(ctx context.Context) (tried int) {
	var held map[netip.Addr][]lease.Lease
	held, r.unread = r.heldOn(ctx, r.hosts)
	if r.unread != nil {
		return min(1, len(r.hosts))
	}
	if refusals := r.refusals(ctx, held); len(refusals) > 0 {
		for _, h := range r.hosts {
			if err := refusals[h]; err != nil {
				r.refused = append(r.refused, err)
			}
		}
		return 0
	}
	for i, h := range r.hosts {
		r.one(ctx, h, held[h], r.state(h).turn)
		if ctx.Err() != nil || resource.IsUnreachable(r.at[h].err) {
			return i + 1
		}
	}
	return len(r.hosts)
}

// one warns about pods that still exist, and releases the addresses that the host has held since before its turn.
func (r *releaseRun) one(ctx context.Context, h netip.Addr, held []lease.Lease, turn time.Time) {
	if r.state(h); len(held) == 0 {
		r.Say.Note("host %s holds no addresses: nothing to release", h)
		return
	}
	r.warnLive(ctx, h, held)
	r.release(ctx, h, held, turn)
}

// release releases the addresses that the host has held since before turn, and prints the result. It records errors in
// the state of the host.
func (r *releaseRun) release(ctx context.Context, h netip.Addr, held []lease.Lease, turn time.Time) {
	s, gone := r.state(h), held
	s.err = nil
	if r.DryRun != app.DryRunClient {
		gone, s.err = allocator.ReleaseHeld(ctx, r.leases, h, held, turn, r.Change(ctx, lease.VerbReleaseHost,
			r.reason))
	}
	s.held, s.gone = len(held), len(gone)
	r.released = append(r.released, gone...)
	if s.err == nil || r.wait && len(gone) > 0 {
		r.Say.Done("host %s: %s released%s", h, humanize.Plural(len(gone), "address"), resource.StayRetained(gone))
	}
}

// recheck lists the leases again after all hosts, and releases the addresses that a host got between the first list and
// its turn. It makes one list for all hosts, because ten thousand lists would take minutes.
func (r *releaseRun) recheck(ctx context.Context) app.Several {
	var hosts []netip.Addr
	for _, h := range r.hosts {
		if r.at[h].err == nil {
			hosts = append(hosts, h)
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	held, err := r.heldOn(ctx, hosts)
	if err != nil {
		return app.Several{(&app.Failure{
			Message: fmt.Sprintf("whether a host took addresses meanwhile is unknown: %v", err), Cause: err,
		}).WithHint("%s", hintRest)}
	}
	for _, h := range hosts {
		turn := r.at[h].turn
		held[h] = slices.DeleteFunc(held[h], func(l lease.Lease) bool { return !allocator.HeldOn(l, h, turn) })
	}
	refusals := r.refusals(ctx, held)
	for _, h := range hosts {
		turn, left := r.at[h].turn, held[h]
		switch {
		case len(left) == 0 || ctx.Err() != nil:
		case refusals[h] != nil:
			r.at[h].err = refusals[h]
		default:
			r.Say.Wait("host %s: %s in use anew", h, humanize.Plural(len(left), "address"))
			r.one(ctx, h, left, turn)
		}
	}
	return nil
}

// failures returns an error for each host that was tried and still holds addresses.
func (r *releaseRun) failures(ctx context.Context) (failed app.Several) {
	if r.unread != nil {
		return app.Several{fmt.Errorf("host %s: nothing was released: %w", r.hosts[0], r.unread)}
	}
	for _, h := range r.hosts {
		if s := r.at[h]; s != nil && s.err != nil {
			failed = append(failed, r.partly(ctx, h, s.gone, s.held, s.err))
		}
	}
	return failed
}
