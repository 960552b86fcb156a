package claim

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// syncObject brings the object of a claim up to date. It carries the finalizer while it is wanted. One that annotations
// made has the spec that they ask for. It goes when it was deleted, or when annotations made it and it is empty. done:
// nothing else is to be done for the claim now.
//
// A claim that is being deleted waits for all its addresses, and for requests that do not know of the deletion yet. One
// that annotations made waits only for the addresses that go back, and is made again from those that pods have. Pods
// that are gone, as on a host that is away, could not have it made again: their addresses go back when the host is
// back.
func (r *Reconciler) syncObject(ctx context.Context, s *scope) (done bool, err error) {
	o, c, leases := s.object, s.claim, s.leases
	next := o.DeepCopy()
	switch {
	case c.Deleting:
		held := slices.ContainsFunc(leases, func(l lease.Lease) bool { return !c.Managed || c.Abandons(l) })
		if held || c.Linger(r.Leases.Now()) > 0 || !controllerutil.RemoveFinalizer(next, v1.ClaimFinalizer) {
			return false, nil
		}
		orphans := slices.DeleteFunc(slices.Clone(leases),
			func(l lease.Lease) bool { _, there := r.pod(ctx, l); return there })
		if err := r.reclaimAll(ctx, orphans, "its claim is gone"); err != nil {
			return false, err
		}
	case c.Managed && len(leases) == 0:
		return true, client.IgnoreNotFound(r.Client.Delete(ctx, o,
			client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion}))
	default:
		changed := controllerutil.AddFinalizer(next, v1.ClaimFinalizer)
		if c.Managed {
			if spec, ok := r.wantedSpec(ctx, s); ok {
				next.Spec = spec
				if now, is := next.Spec.Owner, o.Spec.Owner; now != nil && is != nil && now.Kind == is.Kind &&
					now.Name == is.Name {
					now.APIVersion = is.APIVersion // another version is the same owner, which cannot be changed
				}
				changed = changed || !claim.SameSpec(next.Spec, o.Spec)
			}
		}
		if !changed {
			return false, nil
		}
	}
	err = r.Client.Patch(ctx, next, client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		err = nil // a newer one is on its way
	}
	return true, err
}

// wantedSpec returns what annotations, or an IPAMClaim, ask of a claim that was made for them; ok is false while nobody
// is there who says so. Of a kind that is not served nobody knows what its annotations mean. An IPAMClaim says by
// itself which addresses it is for: the next one of the name may ask for others.
func (r *Reconciler) wantedSpec(ctx context.Context, s *scope) (spec v1.BCSNetIPClaimSpec, ok bool) {
	c := s.claim
	if p, ok := r.policyOf(ctx, c.Name, s.leases); ok && !p.Named && r.Owners.Served(c.Workload) {
		return claim.Derive(p, r.Owners.APIVersion), true
	}
	if !c.Workload.IsIPAMClaim() {
		return spec, false
	}
	o, err := r.Owners.IPAMClaim(ctx, c.Workload.Namespace, c.Workload.Name)
	if err != nil || o.Problem != "" {
		return spec, false
	}
	spec = *s.object.Spec.DeepCopy()
	spec.Addresses = (&workload.Policy{Requests: o.Requests}).ClaimAddresses()
	return spec, true
}
