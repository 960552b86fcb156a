package claim

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// reclaim is a phase: it does what is due with the addresses that the claim keeps. Where it is not known what the
// claim's workload needs, it does what does not depend on that.
func (r *Reconciler) reclaim(ctx context.Context, s *scope) (result reconcile.Result, err error) {
	var need *claim.Need
	if s.claim.Asks(s.leases) {
		need, s.unknown = r.need(ctx, s.claim)
		result.RequeueAfter = askEvery
	}
	steps, at := claim.Steps(s.claim, need, s.leases, r.Leases.Now())
	for _, step := range steps {
		if err := r.apply(ctx, s.object, step); err != nil {
			return reconcile.Result{}, err
		}
	}
	if !at.IsZero() {
		wait := max(at.Sub(r.Leases.Now())+time.Millisecond, time.Millisecond)
		result.RequeueAfter = leadership.Sooner(result.RequeueAfter, wait)
	}
	return result, nil
}

// goneSince is from when to when a workload was seen not to exist. kind: at one of these times the API server did not
// even serve its kind.
type goneSince struct {
	since, seen time.Time
	kind        bool
}

// kindReclaimDelay is how long a kind has to be gone before its workloads count as gone with it: while a
// CustomResourceDefinition is replaced, its objects are made again.
const kindReclaimDelay = 10 * time.Minute

// seenAgain returns the absence after another look that found the workload missing. After a while without a look, an
// absence begins anew.
func (a goneSince) seenAgain(now time.Time, kind bool) goneSince {
	if now.Sub(a.seen) > 3*askEvery {
		a = goneSince{since: now}
	}
	a.seen, a.kind = now, a.kind || kind
	return a
}

// lasts reports whether the workload is gone for good: it was seen so twice, at least claim.ReclaimDelay apart.
func (a goneSince) lasts() bool {
	wait := claim.ReclaimDelay
	if a.kind {
		wait = kindReclaimDelay
	}
	return a.seen.Sub(a.since) >= wait
}

// need asks the API server what the workload of a claim needs; nil when that is not known. A workload is gone when it
// was seen so twice, at least claim.ReclaimDelay apart: what it left may be all that it has when it comes again.
func (r *Reconciler) need(ctx context.Context, c claim.Claim) (*claim.Need, error) {
	n, err := r.Owners.Replicas(ctx, c.Workload)
	if err == nil {
		if err := r.checkMigrated(ctx, c); err != nil {
			return nil, err
		}
	}
	if !errors.Is(err, workload.ErrGone) {
		r.States.change(c.Name, func(of *state) { of.gone = goneSince{} })
	}
	switch {
	case err == nil:
		need := &claim.Need{Replicas: n.Count, Start: n.Start, Left: r.States.of(c.Name).migrated}
		if n.Sparse {
			need.Stays = func(l ipam.Lease) bool {
				pod, found := r.podNamed(ctx, l)
				return found && !pod.Deleting && !pod.Ended
			}
		}
		return need, nil
	case errors.Is(err, workload.ErrNoReplicas):
		return nil, nil
	case !errors.Is(err, workload.ErrGone):
		return nil, err
	case !r.States.workloadGone(c.Name, errors.Is(err, workload.ErrKindGone)):
		return nil, nil
	}
	return &claim.Need{Gone: true}, nil
}

// checkMigrated decides whether the workload of a claim has migrated: whether its newest pod draws its addresses from
// another claim, or from none. It is asked only after some pod did. What earlier pods gave up is of no use to such a
// workload, and its pool may have no other addresses.
func (r *Reconciler) checkMigrated(ctx context.Context, c claim.Claim) error {
	if !r.States.of(c.Name).migrated {
		return nil
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(c.Workload.Namespace)); err != nil {
		return err
	}
	migrated, newest := false, time.Time{}
	for i := range pods.Items {
		pod := workload.FromObject(&pods.Items[i])
		if pod.Deleting || pod.Ended || pod.Controller.Name == "" || pod.Created.Before(newest) {
			continue
		}
		p, err := r.Policies.Resolve(ctx, pod)
		if p.Workload.UID = ""; err != nil || p.Workload != c.Workload {
			continue
		}
		if pod.Created.After(newest) {
			migrated, newest = true, pod.Created
		}
		migrated = migrated && p.Claim != c.Name // of two of one second: the claim's is enough
	}
	if !migrated || !c.Managed {
		r.States.change(c.Name, func(of *state) { of.migrated = false })
	}
	return nil
}

// apply frees one address, or changes its retention, unless somebody has it by now. The claim is nil where it is no
// more.
func (r *Reconciler) apply(ctx context.Context, o *v1.BCSNetIPClaim, s claim.Step) error {
	l := s.Lease
	if !s.Free {
		retention := l.Retention
		retention.ExpiredTime = store.FormatTime(s.Expires)
		if s.Any {
			retention.PodPrimaryKey = ""
		}
		return r.changeRetention(ctx, l, retention)
	}
	freed, err := allocator.FreeLease(ctx, r.Leases, l, ipam.Change{}, func(now ipam.Lease) bool {
		return now.State == ipam.Reserved && now.Claim == l.Claim && now.Updated.Equal(l.Updated)
	})
	if freed {
		r.Log.Info("a claim gave an address back", "claim", l.Claim, "address", l.Addr.String(), "key", l.PodPrimaryKey, "reason", s.Why)
		if o == nil {
			return err
		}
		r.Events.Eventf(o, nil, corev1.EventTypeNormal, v1.ReasonAddressFreed, "Free", "gave %s back: %s", l.Addr, s.Why)
	}
	return err
}

// changeRetention changes what a lease keeps beyond its holder. After a conflict the watch brings the claim back.
func (r *Reconciler) changeRetention(ctx context.Context, l ipam.Lease, s ipam.Retention) error {
	next, changed := ipam.ChangeRetention(l, s)
	if !changed {
		return nil
	}
	if _, err := r.Leases.Write(ctx, next); store.IgnoreConflict(err) != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// syncRetentionsEvery is how often the retentions of addresses that pods have are compared with what their claims and
// annotations ask for. They differ where annotations came or went while the pod runs, or where the lease was made again
// without them.
const syncRetentionsEvery = 20 * time.Second

// syncRetentions brings the retentions of addresses that pods have up to date until the context ends.
func (r *Reconciler) syncRetentions(ctx context.Context) {
	tick := time.NewTicker(syncRetentionsEvery)
	defer tick.Stop()
	for {
		for _, l := range r.Index.Find(func(l ipam.Lease) bool { return l.State == ipam.Active && l.Owner == "" }) {
			if ctx.Err() != nil {
				return
			}
			pod, found := r.pod(ctx, l)
			if !found {
				continue
			}
			terms, err := r.Constraints.Of(ctx, pod)
			switch {
			case err != nil && r.claimLost(ctx, l, err): // nobody is left whom it could be kept for
				terms = allocator.Constraints{}
			case err != nil || terms.RetentionFor(l) == l.Retention || r.outlives(ctx, pod) || terms.Claim == "" && r.isBeingDeleted(ctx, l.Claim):
				continue // what is wrong with it, the next ADD says
			}
			if err := r.changeRetention(ctx, l, terms.RetentionFor(l)); err != nil {
				r.Log.Warn("could not bring the terms of an address up to date", "address", l.Addr.String(), "pod", l.Who(), "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// isBeingDeleted reports whether a claim that somebody made is being deleted: until it is gone it keeps the addresses
// of its pods.
func (r *Reconciler) isBeingDeleted(ctx context.Context, name string) bool {
	var o v1.BCSNetIPClaim
	return name != "" && r.Client.Get(ctx, nameOf(name), &o) == nil && o.DeletionTimestamp != nil && o.Labels[claim.Managed] != "true"
}

// claimLost reports whether the claim that a pod names, and that its lease carries, is gone. It was made and deleted
// while no controller ran to guard it, or deleted before a stopped replica gave the address.
func (r *Reconciler) claimLost(ctx context.Context, l ipam.Lease, why error) bool {
	refusal, ok := errors.AsType[*ipam.Refusal](why)
	if !ok || refusal.Reason != ipam.ReasonClaimNotFound || l.Claim == "" {
		return false
	}
	return apierrors.IsNotFound(r.Live.Get(ctx, nameOf(l.Claim), &v1.BCSNetIPClaim{}))
}

// outlives reports whether a pod may have outlived its workload, or is on its way out. What the workload's annotations
// asked for has gone with it, and counts all the same.
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
