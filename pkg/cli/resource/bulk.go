package resource

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// InBulk calls do for addresses, several at once, and returns an error or nil for each. After an interruption no
// further call begins. done is the participle for messages.
func InBulk(
	ctx context.Context, s *app.App, leases []lease.Lease, done string, do func(int, lease.Lease) error,
) []error {
	OutlivePipes()
	failed := make([]error, len(leases))
	var changed atomic.Int64
	defer reportProgress(s, func() string {
		return fmt.Sprintf("%d of %s %s", changed.Load(), humanize.Plural(len(leases), "address"), done)
	})()
	var group errgroup.Group
	group.SetLimit(AtOnce)
	for i, l := range leases {
		group.Go(func() error {
			if failed[i] = ctx.Err(); failed[i] == nil {
				failed[i] = do(i, l)
			}
			if failed[i] == nil {
				changed.Add(1)
			}
			return nil
		})
	}
	_ = group.Wait() // what failed is in failed
	return failed
}

// OutlivePipes lets a change complete even if nobody reads standard output any more; standard error still gets the
// result. Other commands end silently then.
func OutlivePipes() { signal.Ignore(syscall.SIGPIPE) }

// tellEvery is the interval of messages about the progress of a long change.
const tellEvery = 3 * time.Second

// reportProgress prints the progress of a long change until stop is called.
func reportProgress(s *app.App, how func() string) (stop func()) {
	ended := make(chan struct{})
	var teller sync.WaitGroup
	teller.Go(func() {
		tick := time.NewTicker(tellEvery)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				s.Say.Wait("%s", how())
			}
		}
	})
	return func() {
		close(ended)
		teller.Wait()
	}
}

// NoneDone returns the error for addresses of which none was changed, because some cannot be. It lists a few of the
// reasons.
func NoneDone(s *app.App, n int, done string, failed app.Several) error {
	if n > 1 {
		s.Say.Warn("none of the %s was %s:", humanize.Plural(n, "address"), done)
	}
	if more := len(failed) - app.MaxNamed; more > 0 {
		failed = append(failed[:app.MaxNamed], fmt.Errorf("and %s", humanize.Plural(more, "more address")))
	}
	return failed
}

// Unfinished returns the error for addresses of which some were not changed; nil if all were. done is the participle
// for messages.
func Unfinished(ctx context.Context, done string, leases []lease.Lease, failed []error) error {
	var left []netip.Addr
	var first error
	for i, err := range failed {
		if err != nil {
			left = append(left, leases[i].Addr)
			if first == nil {
				first = err
			}
		}
	}
	if len(left) == 0 {
		return nil
	}
	f := &app.Failure{Cause: first, Hint: "run it again: it does the rest"}
	f.Message = fmt.Sprintf("%s was not %s", left[0], done)
	if len(leases) > 1 {
		f.Message = fmt.Sprintf("%d of %s %s, not %s", len(leases)-len(left), humanize.Plural(len(leases), "address"),
			done, Spell(ipaddr.SetOfAddrs(left...)))
	}
	var r *ipam.Refusal
	var known *app.Failure
	switch {
	case ctx.Err() != nil:
		f.Cause = nil
	case errors.As(first, &known):
		f.Reason, f.Hint, f.Code = known.Reason, known.Hint, known.Code
		f.Message += ": " + known.Message
	case errors.As(first, &r):
		f.Reason = r.Reason
		f.Message += ": " + r.Message
		if r.Reason == ipam.ReasonForbidden {
			f.Hint = app.HintRights
		}
	default:
		f.Message += ": " + first.Error()
	}
	return f
}
