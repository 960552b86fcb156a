package allocator

import (
	"context"
	"errors"
	"time"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// noMore makes sure by one read that the pod of a lease is gone and that its containers have had their grace period:
// the request's pod comes after that pod. An error says that they have not. It does not ask whether the host can be
// reached: whoever made the next pod of the key, or deleted the earlier one by force, has vouched for that.
func (s *succession) noMore(ctx context.Context, t *attempt, l lease.Lease) error {
	if l.PodName == "" {
		return ipam.RefuseFacts(ipam.ReasonClaimConflict, earlierHolder(explain.EarlierHolderIsNoPod, t.Request, l))
	}
	now := s.engine.leases.Now()
	pod, err := s.engine.pods.FindLive(ctx, l.Namespace, l.PodName, "")
	switch {
	case errors.Is(err, workload.ErrNotFound):
		return s.mayRun(t.Request, l, gone.PodGone, now, s.vanished.since(l, now))
	case err != nil:
		return readFailed(err)
	}
	switch check, _ := gone.Record(l, &pod, gone.Indexed(s.engine.index.Leases), now); check {
	case gone.PodEnded:
		return nil
	case gone.PodReplaced:
		return s.mayRun(t.Request, l, check, now, gone.Told(check, &pod))
	case gone.PodGone, gone.PodOtherAddress:
	}
	if l.Namespace == t.Namespace && l.PodName == t.PodName && pod.UID == t.holder.PodUID && l.PodUID != pod.UID {
		return nil // the lease may be the pod's own by an older UID
	}
	state := "is there"
	if pod.Deleting {
		state = "is being deleted"
	}
	facts := earlierHolder(explain.EarlierPodIsThere, t.Request, l)
	facts.Because = []string{state}
	return ipam.RefuseFacts(ipam.ReasonClaimConflict, facts)
}

// earlierHolder returns the facts of a refusal of an address that a claim keeps for the request and that an earlier
// holder has.
func earlierHolder(kind explain.Kind, r Request, l lease.Lease) explain.Facts {
	return explain.Facts{
		Kind: kind, Who: r.who(), Address: l.Addr, Key: l.PodPrimaryKey, Claim: l.Claim, By: l.Where(), Host: l.Host,
		Namespace: l.Namespace, Pod: l.Namespace + "/" + l.PodName,
	}
}

// mayRun refuses a request while the containers of the earlier pod of its key may run although the pod is gone.
func (s *succession) mayRun(r Request, l lease.Lease, check gone.Check, now, since time.Time) error {
	left := since.Add(s.rule.Ending(l, check)).Sub(now)
	if left <= 0 {
		return nil
	}
	facts := earlierHolder(explain.EarlierPodMayRun, r, l)
	facts.In = max(left, time.Second).Round(time.Second)
	return ipam.RefuseFacts(ipam.ReasonClaimConflict, facts)
}
