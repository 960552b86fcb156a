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

// ipamClaimRetry is how soon the status of an IPAMClaim is tried again that cannot be read or written: somebody has to
// change a role or the CRD first.
const ipamClaimRetry = time.Minute

// publishIPAMClaim writes into the status of an IPAMClaim what its claim has. again is when to try once more where that
// failed; 0 otherwise. IPAMClaims are others' objects: what is wrong with them holds nothing of ours up.
func (r *Reconciler) publishIPAMClaim(ctx context.Context, w workload.Workload) (again time.Duration) {
	if !r.IPAMClaims || !w.IsIPAMClaim() {
		return 0
	}
	c, err := r.Owners.IPAMClaim(ctx, w.Namespace, w.Name)
	if err == nil {
		err = r.writeIPAMClaim(ctx, c)
	}
	switch {
	case err == nil:
	case errors.Is(err, workload.ErrGone):
		r.States.change(w.Namespace+"/"+workload.ClaimOfIPAMClaim(w.Name), func(of *state) { of.refused = failure{} })
	case apierrors.IsNotFound(err): // it went meanwhile
	case apierrors.IsConflict(err): // the watch brings a newer one
		return conditions.WriteDelay
	default:
		r.Log.Debug("the status of an IPAMClaim is not up to date", "ipamclaim", w.Namespace+"/"+w.Name, "error", err)
		if r.States.mayWarn() {
			r.Log.Warn("the status of IPAMClaims cannot be written; they are tried again every minute", "ipamclaim",
				w.Namespace+"/"+w.Name, "error", err)
		}
		return ipamClaimRetry
	}
	return 0
}

// writeIPAMClaim writes the status of an IPAMClaim where that is not as it should be. It has the addresses of the claim
// that was made for it, and of one that somebody made in its place.
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

// Refused notes why a request was refused that an IPAMClaim was named for: its status says so while it has no address.
// It keeps the first message of a reason, which later ones would only vary.
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

// mayWarn reports whether a problem with IPAMClaims is to be logged: one in a while, however many they are.
func (s *States) mayWarn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.warned) < 10*ipamClaimRetry {
		return false
	}
	s.warned = time.Now()
	return true
}

// ipamClaims queues the claims of all IPAMClaims that are known, and has them watched from then on.
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
