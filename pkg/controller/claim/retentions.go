package claim

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// changeRetention changes the retention of a lease. After a conflict, the watch queues the claim again.
func (r *Reconciler) changeRetention(ctx context.Context, l lease.Lease, s lease.Retention) error {
	next, changed := lease.ChangeRetention(l, s)
	if !changed {
		return nil
	}
	if _, err := r.Leases.Write(ctx, next); store.IgnoreConflict(err) != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// syncRetentionsEvery is the interval in which the retentions of pods' addresses are compared with their claims and
// annotations. They differ if annotations were added or removed while the pod runs, or if the lease was created again
// without them.
const syncRetentionsEvery = 20 * time.Second

// syncRetentions keeps the retentions of pods' addresses up to date until the context ends.
func (r *Reconciler) syncRetentions(ctx context.Context) {
	tick := time.NewTicker(syncRetentionsEvery)
	defer tick.Stop()
	for {
		for _, l := range r.Index.Leases.Find(func(l lease.Lease) bool {
			return l.State == lease.Active && l.Owner == ""
		}) {
			if ctx.Err() != nil {
				return
			}
			pod, found := r.pod(ctx, l)
			if !found {
				continue
			}
			pod = pod.At(l.IfName, r.Index.Pools.NetworkOf(l))
			terms, err := r.Constraints.Of(ctx, pod)
			switch {
			case err != nil && r.claimLost(ctx, l, err): // there is nobody to keep it for
				terms = allocator.Constraints{}
			case err != nil || terms.RetentionFor(r.Index.Pools, l) == l.Retention || r.outlives(ctx, pod) ||
				terms.Claim == "" && r.isBeingDeleted(ctx, l.Claim):
				continue // the next ADD reports the error
			}
			if err := r.changeRetention(ctx, l, terms.RetentionFor(r.Index.Pools, l)); err != nil {
				r.Log.Warn("could not bring the terms of an address up to date", "address", l.Addr.String(), "pod",
					l.Who(), "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// isBeingDeleted reports whether a claim that somebody created is being deleted: until it is gone, it keeps the
// addresses of its pods.
func (r *Reconciler) isBeingDeleted(ctx context.Context, name string) bool {
	var o v1.BCSNetIPClaim
	return name != "" && r.Client.Get(ctx, nameOf(name), &o) == nil && o.DeletionTimestamp != nil &&
		o.Labels[claim.Managed] != "true"
}

// claimLost reports whether the claim that a pod names, and that its lease has, is gone. It was created and deleted
// while no controller ran to guard it, or deleted before a stopped replica allocated the address.
func (r *Reconciler) claimLost(ctx context.Context, l lease.Lease, why error) bool {
	refusal, ok := errors.AsType[*ipam.Refusal](why)
	if !ok || refusal.Reason != ipam.ReasonClaimNotFound || l.Claim == "" {
		return false
	}
	return apierrors.IsNotFound(r.Live.Get(ctx, nameOf(l.Claim), &v1.BCSNetIPClaim{}))
}

// outlives reports whether a pod may have outlived its workload, or is ending. The workload's annotations are gone with
// it, but still count.
func (r *Reconciler) outlives(ctx context.Context, pod workload.Pod) bool {
	if pod.Deleting {
		return true
	}
	p, err := r.Policies.Resolve(ctx, pod)
	if err != nil {
		return true
	}
	gone, err := r.Owners.Gone(ctx, p.Workload)
	return err != nil || gone
}
