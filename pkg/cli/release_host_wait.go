package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/words"
)

// quietLooks is how many looks in a row must find nothing: a request that was on its way may take an address
// after the first.
const quietLooks = 2

// lookEvery is the time between two looks.
const lookEvery = 500 * time.Millisecond

// waiter releases a host until it holds nothing.
type waiter struct {
	*releaseHost
	leases *store.Client
	host   netip.Addr
	// last is why the latest attempt did not do everything.
	last error
	left int
	gone []ipam.Lease
}

// settle goes on where a first attempt ended, with first: it releases what that left, and what the host takes
// meanwhile. The answer is what it released beyond the first attempt.
func (v *releaseHost) settle(ctx context.Context, leases *store.Client, h netip.Addr, first error) ([]ipam.Lease, error) {
	w := &waiter{releaseHost: v, leases: leases, host: h, last: first}
	if hopeless(first) {
		return nil, first
	}
	waiting := ctx
	if v.timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, v.timeout)
		defer cancel()
	}
	quiet := 0
	err := wait.PollUntilContextCancel(waiting, lookEvery, true, func(ctx context.Context) (bool, error) {
		none, err := w.look(ctx)
		switch {
		case err != nil:
			return false, err
		case !none:
			quiet = 0
			return false, nil
		}
		quiet++
		return quiet >= quietLooks, nil
	})
	return w.gone, w.outcome(ctx, waiting, err)
}

// look releases what the host holds; none is true when that was nothing.
func (w *waiter) look(ctx context.Context) (none bool, err error) {
	all, err := w.heldOn(ctx, []netip.Addr{w.host})
	held := all[w.host]
	switch {
	case err != nil:
		w.last = err
		return false, w.orOn(err)
	case len(held) == 0:
		w.left = 0
		return true, nil
	}
	if w.left = len(held); w.last == nil {
		w.say.wait("host %s: %s in use anew", w.host, words.Plural(len(held), "address"))
	} else {
		w.say.wait("host %s: %s left, trying again", w.host, words.Plural(len(held), "address"))
	}
	gone, err := allocator.ReleaseHeld(ctx, w.leases, w.host, held, w.change(ctx, ipam.VerbReleaseHost, w.reason))
	w.gone, w.last = append(w.gone, gone...), err
	if len(gone) > 0 {
		w.say.done("host %s: %s released", w.host, words.Plural(len(gone), "address"))
	}
	return false, w.orOn(err)
}

// orOn is the error where trying again will not help, and nil to go on.
func (w *waiter) orOn(err error) error {
	if hopeless(err) {
		return err
	}
	return nil
}

// hopeless is true for what does not mend itself.
func hopeless(err error) bool {
	var r *ipam.Refusal
	var f *failure
	return errors.As(err, &r) && r.Reason == ipam.ReasonForbidden || errors.As(err, &f) && f.reason == ipam.ReasonForbidden
}

func (w *waiter) outcome(ctx, waiting context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &failure{message: fmt.Sprintf("host %s: no longer waited for", w.host), hint: "run it again: it does the rest"}
	case errors.Is(waiting.Err(), context.DeadlineExceeded):
		text := fmt.Sprintf("host %s still has %s in use after %s", w.host, words.Plural(w.left, "address"), w.timeout.Round(time.Second/10))
		if w.last != nil && !errors.Is(w.last, context.DeadlineExceeded) {
			text += ": " + w.explain(w.last).Error()
		}
		return (&failure{code: exitTimeout, message: text, cause: err}).
			withHint("if the machine is on, its pods take new addresses; see bcsnetctl host describe %s", w.host)
	default:
		return w.partly(ctx, w.host, len(w.gone), len(w.gone)+w.left, err)
	}
}
