package allocator

import (
	"context"
	"errors"
	"net/netip"
	"sync"
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
func (a *Allocator) noMore(ctx context.Context, t *attempt, l lease.Lease) error {
	if l.PodName == "" {
		return ipam.RefuseFacts(ipam.ReasonClaimConflict, earlierHolder(explain.EarlierHolderIsNoPod, t.Request, l))
	}
	now := a.leases.Now()
	pod, err := a.pods.FindLive(ctx, l.Namespace, l.PodName, "")
	switch {
	case errors.Is(err, workload.ErrNotFound):
		return a.mayRun(t.Request, l, gone.PodGone, now, a.vanished.since(l, now))
	case err != nil:
		return readFailed(err)
	}
	switch check, _ := gone.Record(l, &pod, gone.Indexed(a.index), now); check {
	case gone.PodEnded:
		return nil
	case gone.PodReplaced:
		return a.mayRun(t.Request, l, check, now, gone.Told(check, &pod))
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
func (a *Allocator) mayRun(r Request, l lease.Lease, check gone.Check, now, since time.Time) error {
	left := since.Add(a.rule.Ending(l, check)).Sub(now)
	if left <= 0 {
		return nil
	}
	facts := earlierHolder(explain.EarlierPodMayRun, r, l)
	facts.In = max(left, time.Second).Round(time.Second)
	return ipam.RefuseFacts(ipam.ReasonClaimConflict, facts)
}

// maxVanished bounds what is remembered of pods that are gone. Beyond it all wait anew.
const maxVanished = 4096

// vanished remembers since when pods of leases are known to be gone, where nothing else shows it.
type vanished struct {
	mu sync.Mutex
	by map[vanishedKey]sighting
}

// vanishedKey is a pod that had an address; while a virtual machine migrates there are two.
type vanishedKey struct {
	addr   netip.Addr
	podUID string
}

type sighting struct {
	version uint64
	at      time.Time
}

func newVanished() *vanished { return &vanished{by: map[vanishedKey]sighting{}} }

// since returns when somebody first asked for an address whose pod is gone; now for the first one.
func (v *vanished) since(l lease.Lease, now time.Time) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := vanishedKey{l.Addr, l.PodUID}
	s, ok := v.by[key]
	if !ok || s.version != l.Bound() {
		if len(v.by) >= maxVanished {
			clear(v.by)
		}
		s = sighting{l.Bound(), now}
		v.by[key] = s
	}
	return s.at
}
