package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

const (
	// preallocateAtOnce is how many addresses a claim takes before it shows what it has, and others have their turn. One
	// that has more takes as many again, but no more than preallocateAtMost: what it has is looked at each time.
	preallocateAtOnce, preallocateAtMost = 256, 4096
	// missingEvery is how often a claim that lacks addresses looks for some although none was heard of: pools
	// change, and rests end.
	missingEvery = 20 * time.Second
)

// preallocate has a claim take what it is to have before pods ask, and says when to look again: next, or earlier.
func (r *claimReconciler) preallocate(ctx context.Context, o *v1.BCSNetIPClaim, c claim.Claim, next time.Duration) (view claimView, _ time.Duration, err error) {
	r.waits(c.Name, false)
	if !c.Preallocate || c.Deleting {
		r.failed(r.failing, c.Name, nil)
		return view, next, nil
	}
	before := r.index.ClaimUsage(c.Name)
	atMost := before.Most() + min(max(before.Most(), preallocateAtOnce), preallocateAtMost)
	view.stock, err = claim.Preallocate(ctx, r.alloc, r.live, o, atMost)
	if err == nil && view.stock.Missing > 0 { // there are no more: how many would be all
		view.stock, err = claim.Preallocate(ctx, r.alloc, r.live, o, claim.MaxPreallocated)
	}
	view.failure = r.failed(r.failing, c.Name, err)
	switch {
	case err != nil:
		view.taking = true
		return view, next, fmt.Errorf("claim %s: taking its addresses: %w", c.Name, err)
	case view.stock.Missing > 0:
		r.waits(c.Name, true)
		if next == 0 || missingEvery < next {
			next = missingEvery
		}
	case view.stock.Has >= atMost:
		view.taking, next = true, time.Millisecond
	}
	if n := r.index.ClaimUsage(c.Name).All() - before.All(); n > 0 {
		r.log.Info("a claim took addresses before any pod asked", "claim", c.Name, "addresses", n, "has", view.stock.Has, "missing", view.stock.Missing)
	}
	return view, next, nil
}

// failure is why something could not be done for a claim, such as to take its addresses although there may be some.
type failure struct{ reason, message string }

// failures are why it could not be done the last time, and what the claim's status says of that.
type failures struct {
	last  string
	shown *failure
}

// failed takes note of what came of something for a claim, and returns the error that lasts: it came twice, one
// after the other. It is told in the words of the first time, which the others would only vary: each other status would
// have the claim looked at again at once.
func (r *claimReconciler) failed(all map[string]failures, name string, err error) *failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(all, name)
		return nil
	}
	now := failure{string(ipam.ReasonInternal), err.Error()}
	if refusal, ok := errors.AsType[*ipam.Refusal](err); ok {
		now = failure{string(refusal.Reason), refusal.Message}
	}
	f := all[name]
	if f.last == now.reason && (f.shown == nil || f.shown.reason != now.reason) {
		f.shown = &now
	}
	f.last = now.reason
	all[name] = f
	return f.shown
}

// waits takes note whether a claim waits for addresses.
func (r *claimReconciler) waits(name string, waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.short, name); waits {
		r.short[name] = struct{}{}
	}
}

// freed has the claims looked at that wait for addresses: some are free. Each is told once until it waits again.
func (r *claimReconciler) freed() {
	r.mu.Lock()
	if len(r.short) == 0 { // as nearly always
		r.mu.Unlock()
		return
	}
	short := r.short
	r.short = map[string]struct{}{}
	r.mu.Unlock()
	for name := range short {
		r.enqueue(name, claimDelay)
	}
}

// preallocated says whether a claim has what it is to have before pods ask.
func preallocated(c claim.Claim, view claimView) metav1.Condition {
	condition := metav1.Condition{Type: v1.ConditionPreallocated, Status: metav1.ConditionFalse}
	has := humanize.Plural(view.stock.Has, "address")
	switch {
	case view.problem != "":
		condition.Reason, condition.Message = v1.ReasonInvalidSpec, view.problem
	case c.Deleting:
		condition.Reason, condition.Message = v1.ReasonClaimReleasing, "the claim is being deleted"
	case view.failure != nil:
		condition.Reason, condition.Message = view.failure.reason, conditions.Clip(fmt.Sprintf("the claim has %s of a family so far, and cannot take more: %s", has, view.failure.message), conditions.MaxNote)
	case view.taking:
		condition.Reason, condition.Message = v1.ReasonTaking, fmt.Sprintf("the claim has %s of a family so far and takes more", has)
	case view.stock.Missing > 0:
		condition.Reason = string(view.stock.Why.Reason)
		condition.Message = fmt.Sprintf("the claim has %s of a family, %d more cannot be had: %s", has, view.stock.Missing, view.stock.Why.Message)
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, v1.ReasonComplete
		condition.Message = fmt.Sprintf("the claim has %s of a family", has)
	}
	return condition
}

// unclaimedFor is for how long addresses are thought to be left by somebody who was taking them. Older ones may be those of
// a claim that was lost, and is made again from its manifest: they stay.
const unclaimedFor = 10 * time.Minute

// giveBackUnclaimed frees addresses that were lately kept for a claim before any pod asked, and that claim is no more:
// whoever took them did not get to see that. A claim is gone when it was seen so twice, and the API server says so.
func (r *claimReconciler) giveBackUnclaimed(ctx context.Context, name string, leases []ipam.Lease) (next time.Duration, err error) {
	leases = slices.DeleteFunc(slices.Clone(leases), func(l ipam.Lease) bool {
		return !l.IsRetained() || l.PodName != "" || time.Since(l.Updated) > unclaimedFor
	})
	r.mu.Lock()
	since, seen := r.unclaimed[name]
	switch {
	case len(leases) == 0:
		delete(r.unclaimed, name)
	case !seen:
		since = time.Now()
		r.unclaimed[name] = since
	}
	r.mu.Unlock()
	if len(leases) == 0 {
		return 0, nil
	}
	if wait := claim.Settle - time.Since(since); wait > 0 {
		return wait, nil
	}
	key := nameOf(name)
	if err := r.live.Get(ctx, key, &v1.BCSNetIPClaim{}); !apierrors.IsNotFound(err) {
		return claim.Settle, err
	}
	for _, l := range leases {
		if err := r.step(ctx, nil, claim.Step{Lease: l, Free: true, Why: "its claim does not exist"}); err != nil {
			return 0, err
		}
	}
	return 0, nil
}
