package claim

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// goneSince is the period in which a workload was seen not to exist. kind reports whether the API server did not even
// serve its kind at one of these times.
type goneSince struct {
	since, seen time.Time
	kind        bool
}

// kindReclaimDelay is the time for which a kind must be missing before its workloads count as gone: while a
// CustomResourceDefinition is replaced, its objects are created again.
const kindReclaimDelay = 10 * time.Minute

// seenAgain returns the absence after another check that found the workload missing. After a while without a check, an
// absence begins anew.
func (a goneSince) seenAgain(now time.Time, kind bool) goneSince {
	if now.Sub(a.seen) > 3*askEvery {
		a = goneSince{since: now}
	}
	a.seen, a.kind = now, a.kind || kind
	return a
}

// lasts reports whether the workload is gone permanently: it was found missing twice, at least claim.ReclaimDelay
// apart.
func (a goneSince) lasts() bool {
	wait := claim.ReclaimDelay
	if a.kind {
		wait = kindReclaimDelay
	}
	return a.seen.Sub(a.since) >= wait
}

// need asks the API server for the needs of a claim's workload; nil if they are not known. A workload is gone after it
// was found missing twice, at least claim.ReclaimDelay apart: if it is created again, it may need the addresses that it
// left.
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
			need.Stays = func(l lease.Lease) bool {
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

// draws reports whether a pod draws from a claim for one of the interfaces for which the claim has addresses: each
// interface may have its own claim.
func (r *Reconciler) draws(ctx context.Context, pod workload.Pod, name string) bool {
	at := []workload.Pod{pod}
	for _, part := range r.Index.Leases.ClaimUsage(name) {
		at = append(at, pod.At(part.IfName, r.Index.Pools.NetworkOf(part.One)))
	}
	return slices.ContainsFunc(at, func(pod workload.Pod) bool {
		p, err := r.Policies.Resolve(ctx, pod)
		return err == nil && p.Claim == name
	})
}

// checkMigrated decides whether the workload of a claim has migrated: its newest pod draws its addresses from another
// claim, or from none. It is called only after some pod did that. Such a workload does not need the addresses that
// earlier pods released, and its pool may have no others.
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
		migrated = migrated && !r.draws(ctx, pod, c.Name) // of two pods of the same second, one that draws is enough
	}
	if !migrated || !c.Managed {
		r.States.change(c.Name, func(of *state) { of.migrated = false })
	}
	return nil
}
