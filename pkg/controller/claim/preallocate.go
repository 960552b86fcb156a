package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const (
	// preallocateAtOnce is the number of addresses that a claim takes in one pass, before its status is updated and
	// others have their turn. A claim with more addresses takes as many as it has, but at most preallocateAtMost: each
	// pass scans all of them.
	preallocateAtOnce, preallocateAtMost = 256, 4096
	// missingEvery is the interval in which a claim that lacks addresses tries again, even if no address was seen to
	// become free: pools change, and cooldowns end.
	missingEvery = 20 * time.Second
)

// preallocate runs the phase that takes the addresses that the claim must have before pods ask.
func (r *Reconciler) preallocate(ctx context.Context, s *scope) (result reconcile.Result, err error) {
	c, view := s.claim, &s.view
	r.States.short.Set(c.Name, false)
	if !c.Preallocate || c.Deleting {
		r.States.notePreallocation(c.Name, nil)
		return result, nil
	}
	before := r.Index.Leases.ClaimUsage(c.Name)
	atMost := before.Most() + min(max(before.Most(), preallocateAtOnce), preallocateAtMost)
	view.stock, err = claim.Preallocate(ctx, r.Stocker, r.Live, s.object, r.Namespace, atMost)
	if err == nil && view.stock.Missing > 0 { // too few addresses: count all missing ones
		view.stock, err = claim.Preallocate(ctx, r.Stocker, r.Live, s.object, r.Namespace, claim.MaxPreallocated)
	}
	view.failure = r.States.notePreallocation(c.Name, err)
	switch {
	case err != nil:
		view.taking = true
		s.untaken = fmt.Errorf("claim %s: taking its addresses: %w", c.Name, err)
		return result, nil
	case view.stock.Missing > 0:
		r.States.short.Set(c.Name, true)
		result.RequeueAfter = missingEvery
	case view.stock.Has >= atMost:
		view.taking, result.RequeueAfter = true, time.Millisecond
	}
	if n := r.Index.Leases.ClaimUsage(c.Name).All() - before.All(); n > 0 {
		r.Log.Info("a claim took addresses before any pod asked", "claim", c.Name, "addresses", n, "has",
			view.stock.Has, "missing", view.stock.Missing)
	}
	return result, nil
}

func preallocated(c claim.Claim, view statusView) metav1.Condition {
	not := func(reason, format string, args ...any) metav1.Condition {
		return conditions.New(v1.ConditionPreallocated, false, reason, format, args...)
	}
	has := humanize.Plural(view.stock.Has, "address")
	switch {
	case view.problem != "":
		return not(v1.ReasonInvalidSpec, "%s", view.problem)
	case c.Deleting:
		return not(v1.ReasonClaimReleasing, "the claim is being deleted")
	case view.failure != nil:
		return not(view.failure.reason, "%s", conditions.Clip(fmt.Sprintf(
			"the claim has %s of a family so far, and cannot take more: %s", has, view.failure.message),
			conditions.MaxNote))
	case view.taking:
		return not(v1.ReasonTaking, "the claim has %s of a family so far and takes more", has)
	case view.stock.Missing > 0:
		return not(string(view.stock.Why.Reason), "the claim has %s of a family, %d more cannot be had: %s", has,
			view.stock.Missing, view.stock.Why.Message)
	}
	return conditions.New(v1.ConditionPreallocated, true, v1.ReasonComplete, "the claim has %s of a family", has)
}

// unclaimedFor is the age below which addresses without a claim count as left by an interrupted preallocation. Older
// ones may belong to a claim that was lost and is created again from its manifest: they stay.
const unclaimedFor = 10 * time.Minute

// reclaimUnclaimed frees addresses that nobody needs and whose claim does not exist. A recent preallocation took them
// for a claim that was deleted before a controller noticed it. Or pods of an IPAMClaim had them, and the IPAMClaim was
// deleted before a leader could create the claim. It must find this twice, and the API server must confirm it.
func (r *Reconciler) reclaimUnclaimed(
	ctx context.Context, name string, leases []lease.Lease,
) (next time.Duration, err error) {
	wait := claim.ReclaimDelay
	switch gone, err := r.ipamClaimGone(ctx, name, leases); {
	case errors.Is(err, workload.ErrKindGone):
		wait = kindReclaimDelay
	case err != nil:
		return 0, err
	case !gone:
		leases = slices.DeleteFunc(slices.Clone(leases), func(l lease.Lease) bool {
			return l.PodName != "" || time.Since(l.Updated) > unclaimedFor
		})
	}
	leases = slices.DeleteFunc(slices.Clone(leases), func(l lease.Lease) bool { return !l.IsRetained() })
	since := r.States.absent(name, len(leases) > 0)
	if len(leases) == 0 {
		return 0, nil
	}
	if wait -= time.Since(since); wait > 0 {
		return min(wait, askEvery), nil
	}
	key := nameOf(name)
	if err := r.Live.Get(ctx, key, &v1.BCSNetIPClaim{}); !apierrors.IsNotFound(err) {
		return claim.ReclaimDelay, err
	}
	return 0, r.reclaimAll(ctx, leases, "its claim does not exist")
}

// ipamClaimGone reports whether addresses are kept for an IPAMClaim that does not exist; with ErrKindGone if its kind
// does not either. Claim and key of a lease name the IPAMClaim.
func (r *Reconciler) ipamClaimGone(ctx context.Context, name string, leases []lease.Lease) (bool, error) {
	at := slices.IndexFunc(leases, func(l lease.Lease) bool {
		return l.IsRetained() && l.PodPrimaryKey != "" &&
			name == l.Namespace+"/"+workload.ClaimOfIPAMClaim(l.PodPrimaryKey)
	})
	if at < 0 || !r.IPAMClaims {
		return false, nil
	}
	_, err := r.Owners.IPAMClaim(ctx, leases[at].Namespace, leases[at].PodPrimaryKey)
	if errors.Is(err, workload.ErrGone) && !errors.Is(err, workload.ErrKindGone) {
		return true, nil
	}
	return false, err
}
