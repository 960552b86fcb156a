package claim

import (
	"context"
	"errors"
	"net/netip"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// publishIPAMClaim writes the claim's addresses into the status of an IPAMClaim. again is the time after which to retry
// a failure; 0 otherwise. IPAMClaims belong to others: an error in them does not stop our own work.
func (r *Reconciler) publishIPAMClaim(ctx context.Context, w workload.Workload) (again time.Duration) {
	if !r.IPAMClaims || !w.IsIPAMClaim() {
		return 0
	}
	c, err := r.Owners.IPAMClaim(ctx, w.Namespace, w.Name)
	if err == nil {
		err = r.writeIPAMClaim(ctx, c)
	}
	if errors.Is(err, workload.ErrGone) {
		r.States.change(w.Namespace+"/"+workload.ClaimOfIPAMClaim(w.Name), func(of *state) { of.refused = failure{} })
		return 0
	}
	return r.published.Wrote(w.Namespace+"/"+w.Name, err)
}

// writeIPAMClaim writes the status of an IPAMClaim if it is not up to date. The status has the addresses of the claim
// that was created for the IPAMClaim, and of one that somebody created instead.
func (r *Reconciler) writeIPAMClaim(ctx context.Context, c *workload.IPAMClaim) error {
	made, err := r.ClaimsFor(ctx, workload.Workload{
		Group: c.Group, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name,
	})
	if err != nil {
		return err
	}
	name := c.Namespace + "/" + workload.ClaimOfIPAMClaim(c.Name)
	leases := r.Index.Leases.ByClaim(name)
	for _, other := range made {
		if other = c.Namespace + "/" + other; other != name {
			leases = append(leases, r.Index.Leases.ByClaim(other)...)
		}
	}
	var refused *claim.Problem
	if len(leases) > 0 {
		r.States.change(name, func(of *state) { of.refused = failure{} })
	} else if why := r.States.of(name).refused; why.reason != "" {
		refused = &claim.Problem{Reason: why.reason, Message: why.message}
	}
	ours := func(a netip.Addr) bool { pool, _ := r.Index.Pools.PoolOf(a); return pool != "" }
	next := claim.IPAMClaimStatus(c, leases, refused, ours, r.Leases.Now())
	if next.Equal(c.Status) { // most of them: the CRD need not be known
		return nil
	}
	fields, err := r.Owners.IPAMClaimFields(ctx)
	if err != nil {
		return err
	}
	if fields.Known(next).Equal(fields.Known(c.Status)) {
		return nil
	}
	err = r.Owners.SetIPAMClaimStatus(ctx, c, next, fields)
	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		return err
	}
	now, unread := r.Owners.IPAMClaimFields(ctx) // the CRD may have been replaced since it was read
	if unread != nil || now == fields {
		return err
	}
	return r.Owners.SetIPAMClaimStatus(ctx, c, next, now)
}

// Refused records the reason why a request with an IPAMClaim was refused. The IPAMClaim's status shows it while it has
// no address. It keeps the first message of a reason, because later ones would only vary it.
func (s *States) Refused(p workload.Pod, why *ipam.Refusal) {
	ref, ok := p.IPAMClaim()
	if !ok || !s.leads.Leading() {
		return
	}
	name, changed := p.Namespace+"/"+workload.ClaimOfIPAMClaim(ref), false
	s.change(name, func(of *state) {
		if changed = of.refused.reason != string(why.Reason); changed {
			of.refused = failure{string(why.Reason), conditions.Clip(why.Message, conditions.MaxNote)}
		}
	})
	if changed {
		s.enqueue(name, claimDelay)
	}
}

// ipamClaims queues the claims of all known IPAMClaims, and starts to watch IPAMClaims.
func (r *Reconciler) ipamClaims(ctx context.Context) {
	if !r.IPAMClaims {
		return
	}
	all, err := r.Owners.WatchIPAMClaims(ctx)
	if err != nil {
		r.Log.Debug("IPAMClaims are not watched yet", "error", err)
	}
	for _, w := range all {
		r.States.workloadChanged(w)
	}
}
