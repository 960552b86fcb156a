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

// syncObject updates the object of a claim. The object has the finalizer as long as it is needed. A claim from
// annotations has the spec that they request. It is deleted if somebody deleted it, or if annotations created it and it
// is empty. done reports whether nothing else is to be done for the claim now.
//
// A deleted claim waits for all its addresses, and for requests that do not know about the deletion yet. A claim from
// annotations waits only for the addresses that return to pools, and is created again because of those that pods have.
// Pods that are gone, as on a host that is cut off, could not make it be created again: their addresses return when the
// host is back.
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
		err = nil // a newer version is coming
	}
	return true, err
}

// wantedSpec returns the spec that annotations, or an IPAMClaim, request for a claim that was created for them; ok is
// false if there is no such source now. If a kind is not served, the meaning of its annotations is unknown. An
// IPAMClaim itself names its addresses: the next one of the same name may request others.
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
