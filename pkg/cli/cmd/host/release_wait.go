package host

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// quietLooks is the required number of consecutive lists without an address: a request in progress may take one after
// the first list.
const quietLooks = 2

// lookEvery is the time between two lists.
const lookEvery = 500 * time.Millisecond

// untilQuiet releases the addresses that the first attempts left or that hosts take meanwhile, until quietLooks
// consecutive lists show none. It lists once for all remaining hosts.
func (r *releaseRun) untilQuiet(ctx context.Context) app.Several {
	waiting := ctx
	if r.timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, r.timeout)
		defer cancel()
	}
	left := slices.DeleteFunc(slices.Clone(r.hosts),
		func(h netip.Addr) bool { return r.at[h] != nil && hopeless(r.at[h].err) })
	r.unread = nil
	err := wait.PollUntilContextCancel(waiting, lookEvery, true, func(ctx context.Context) (done bool, err error) {
		left, err = r.round(ctx, left)
		return len(left) == 0, err
	})
	failed := r.notQuiet(ctx, left, err)
	for _, h := range r.hosts {
		if s := r.at[h]; s != nil && hopeless(s.err) {
			failed = append(failed, r.partly(ctx, h, s.gone, s.held, s.err))
		}
	}
	return failed
}

// notQuiet returns the errors for hosts that still held addresses or were unknown when cause ended the wait.
func (r *releaseRun) notQuiet(ctx context.Context, left []netip.Addr, cause error) (failed app.Several) {
	switch {
	case len(left) == 0:
		return nil
	case ctx.Err() != nil:
		return app.Several{&app.Failure{Message: hostsText(left) + ": no longer waited for", Hint: hintRest}}
	case hopeless(cause):
		return app.Several{fmt.Errorf("%s: what is in use is unknown: %w", hostsText(left), cause)}
	}
	var unknown []netip.Addr
	for _, h := range left {
		if s := r.at[h]; s != nil && s.held > 0 {
			failed = append(failed, r.late(h, cause))
		} else {
			unknown = append(unknown, h)
		}
	}
	if len(unknown) > 0 {
		text := fmt.Sprintf("%s: after %s no %d looks in a row have found nothing in use", hostsText(unknown),
			r.timeout.Round(time.Second/10), quietLooks)
		if r.unread != nil && !errors.Is(r.unread, context.DeadlineExceeded) {
			text += ": " + resource.Explain(r.releaseVerb.App, r.unread).Error()
		}
		failed = append(failed, &app.Failure{Code: app.ExitTimeout, Message: text, Cause: cause, Hint: hintRest})
	}
	return failed
}

// round lists the addresses of the hosts, releases them, and returns the hosts that need another round. It fails only
// if another round would fail, too.
func (r *releaseRun) round(ctx context.Context, hosts []netip.Addr) (left []netip.Addr, err error) {
	held, err := r.heldOn(ctx, hosts)
	if r.unread = err; err != nil {
		if hopeless(err) {
			return hosts, err
		}
		return hosts, nil
	}
	refusals := r.refusals(ctx, held)
	for _, h := range hosts {
		switch {
		case refusals[h] != nil && ctx.Err() == nil:
			r.state(h).err = refusals[h]
		case ctx.Err() != nil || r.releaseLeft(ctx, h, held[h]):
			left = append(left, h)
		}
	}
	return left, nil
}

// releaseLeft releases the addresses of a host, and reports whether the host needs another round.
func (r *releaseRun) releaseLeft(ctx context.Context, h netip.Addr, held []lease.Lease) bool {
	s := r.at[h]
	switch {
	case s == nil:
		r.one(ctx, h, held, r.leases.Now())
		return !hopeless(r.at[h].err)
	case len(held) == 0:
		s.held, s.gone, s.err = 0, 0, nil
		s.quiet++
		return s.quiet < quietLooks
	case s.err == nil:
		r.Say.Wait("host %s: %s in use anew", h, humanize.Plural(len(held), "address"))
	default:
		r.Say.Wait("host %s: %s left, trying again", h, humanize.Plural(len(held), "address"))
	}
	s.quiet = 0
	r.release(ctx, h, held, r.leases.Now())
	return !hopeless(s.err)
}

// hopeless reports whether another attempt would fail with the same error.
func hopeless(err error) bool {
	var r *ipam.Refusal
	var f *app.Failure
	return errors.As(err, &r) && r.Reason == ipam.ReasonForbidden ||
		errors.As(err, &f) && (f.Reason == ipam.ReasonForbidden || isRefused(err))
}

// late returns the error for a host that still held addresses when the time was over.
func (r *releaseRun) late(h netip.Addr, cause error) error {
	s := r.at[h]
	text := fmt.Sprintf("host %s still has %s in use after %s", h, humanize.Plural(s.held-s.gone, "address"),
		r.timeout.Round(time.Second/10))
	if s.held == s.gone {
		text = fmt.Sprintf("host %s still takes addresses after %s", h, r.timeout.Round(time.Second/10))
	}
	if s.err != nil && !errors.Is(s.err, context.DeadlineExceeded) {
		text += ": " + resource.Explain(r.releaseVerb.App, s.err).Error()
	}
	return (&app.Failure{Code: app.ExitTimeout, Message: text, Cause: cause}).
		WithHint("if the machine is on, its pods take new addresses; see bcsnetctl host describe %s", h)
}

// hostsText names a single host and counts several.
func hostsText(hosts []netip.Addr) string {
	if len(hosts) == 1 {
		return "host " + hosts[0].String()
	}
	return humanize.Plural(len(hosts), "host")
}
