package cli

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

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// inBulk changes addresses, several at once, and keeps what became of each. Once the user interrupts,
// no further change begins. done is what becomes of the addresses.
func (s *session) inBulk(ctx context.Context, leases []ipam.Lease, done string, do func(int, ipam.Lease) error) []error {
	outlivePipes()
	failed := make([]error, len(leases))
	var changed atomic.Int64
	defer s.tell(func() string {
		return fmt.Sprintf("%d of %s %s", changed.Load(), humanize.Plural(len(leases), "address"), done)
	})()
	var group errgroup.Group
	group.SetLimit(atOnce)
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

// outlivePipes has a change go on to its end when nobody reads standard output any more: what was done and what
// was not goes to standard error. Other commands end without a word.
func outlivePipes() { signal.Ignore(syscall.SIGPIPE) }

// tellEvery is how often a long change says how far it is.
const tellEvery = 3 * time.Second

// tell says how far a long change is, until stop is called.
func (s *session) tell(how func() string) (stop func()) {
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
				s.say.wait("%s", how())
			}
		}
	})
	return func() {
		close(ended)
		teller.Wait()
	}
}

// none is the error for addresses of which nothing was done, because not all can be. Few reasons are spelt out.
func (s *session) none(n int, done string, failed several) error {
	if n > 1 {
		s.say.warn("none of the %s was %s:", humanize.Plural(n, "address"), done)
	}
	if more := len(failed) - maxNamed; more > 0 {
		failed = append(failed[:maxNamed], fmt.Errorf("and %s", humanize.Plural(more, "more address")))
	}
	return failed
}

// unfinished is the error for addresses of which some were not changed; nil when all were. done is what
// was to become of them.
func (s *session) unfinished(ctx context.Context, done string, leases []ipam.Lease, failed []error) error {
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
	f := &failure{cause: first, hint: "run it again: it does the rest"}
	f.message = fmt.Sprintf("%s was not %s", left[0], done)
	if len(leases) > 1 {
		f.message = fmt.Sprintf("%d of %s %s, not %s", len(leases)-len(left), humanize.Plural(len(leases), "address"), done, spell(ipaddr.SetOfAddrs(left...)))
	}
	var r *ipam.Refusal
	var known *failure
	switch {
	case ctx.Err() != nil:
		f.cause = nil
	case errors.As(first, &known):
		f.reason, f.hint, f.code = known.reason, known.hint, known.code
		f.message += ": " + known.message
	case errors.As(first, &r):
		f.reason = r.Reason
		f.message += ": " + r.Message
		if r.Reason == ipam.ReasonForbidden {
			f.hint = hintRights
		}
	default:
		f.message += ": " + first.Error()
	}
	return f
}
