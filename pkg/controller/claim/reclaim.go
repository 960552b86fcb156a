package claim

import (
	"context"
	"time"

	"go4.org/netipx"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// reclaim runs the phase that carries out the due steps for kept addresses. If the needs of the claim's workload cannot
// be read, it carries out only the steps that do not depend on them.
func (r *Reconciler) reclaim(ctx context.Context, s *scope) (result reconcile.Result, err error) {
	var need *claim.Need
	if s.claim.Asks(s.leases) {
		need, s.unknown = r.need(ctx, s.claim)
		// The watch reports the end of an IPAMClaim, and thousands of them belong to machines that are off. The end of
		// their kind is noticed by the search for problems.
		if !s.claim.Workload.IsIPAMClaim() || need == nil || need.Gone {
			result.RequeueAfter = askEvery
		}
	}
	steps, at := claim.Steps(s.claim, r.Index.Pools, need, s.leases, r.Leases.Now())
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

// apply frees one address, or changes its retention, unless it has a holder by now. o is nil if the claim no longer
// exists: then there is no event.
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
	freed, err := allocator.FreeLease(ctx, r.Leases, l, lease.Change{}, func(now lease.Lease) bool {
		return now.State == lease.Reserved && now.Claim == l.Claim && now.Updated.Equal(l.Updated)
	})
	if freed {
		r.Log.Info("a claim released an address", "claim", l.Claim, "address", l.Addr.String(), "key", l.PodPrimaryKey,
			"reason", s.Why)
		if o == nil {
			return err
		}
		r.Events.Eventf(o, nil, corev1.EventTypeNormal, v1.ReasonAddressFreed, "Free", "released %s: %s", l.Addr,
			s.Why)
	}
	return err
}

// rivals records the addresses that a claim names, nil for any, and returns the other claims that name some of them. If
// the overlap has changed, it queues the claims that overlapped before or do now.
func (s *States) rivals(name string, now *netipx.IPSet) map[string]*netipx.IPSet {
	s.mu.Lock()
	before := s.naming.set(name, now)
	rivals, met := s.naming.sharing(name, now), []string{}
	if (before == nil) != (now == nil) || before != nil && !before.Equal(now) {
		for other := range rivals {
			met = append(met, other)
		}
		for other := range s.naming.sharing(name, before) {
			if rivals[other] == nil {
				met = append(met, other)
			}
		}
	}
	s.mu.Unlock()
	s.enqueueAll(met)
	return rivals
}

// learn records the addresses that all claims name, at the beginning of a term.
func (s *States) learn(all []v1.BCSNetIPClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.naming = newNaming()
	for i := range all {
		if c, err := claim.FromObject(&all[i]); err == nil && c.Addresses != nil && !c.Deleting {
			s.naming.set(c.Name, c.Addresses)
		}
	}
}
