package allocator

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const (
	// terminatingMost bounds for how long a pod that is being deleted is waited for, if its grace period is longer:
	// some take hours, and the next pods are not to be missing for so long.
	terminatingMost = 2 * time.Minute
	// terminatingSlack is added to that: its containers are killed at the end of the grace period, and its DEL follows.
	terminatingSlack = 5 * time.Second
	// waitMost bounds how long one request waits for such pods in all. It is less than the ten seconds after which the
	// plugin of the released system gives up, which names no deadline. waitSpare is what a request with a shorter
	// deadline keeps for itself.
	waitMost, waitSpare = 8 * time.Second, 2 * time.Second
	// waitPoll bounds how long a waiting request goes without a look at whether the pod is still terminating.
	waitPoll = time.Second
)

// waitDeadline returns until when a request that begins now waits for terminating pods.
func waitDeadline(ctx context.Context) time.Time {
	until := time.Now().Add(waitMost)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-waitSpare).Before(until) {
		return deadline.Add(-waitSpare)
	}
	return until
}

// departures has requests wait for pods that are being deleted, and whose addresses they are to get.
type departures struct {
	engine *engine
	waits  *waitQueue
}

// changed handles a change of the index: a pod that gives up an address wakes the request that waits for it.
func (d *departures) changed(old, l lease.Lease) {
	if old.State == lease.Active && old.KeptOnRelease() && l.State != lease.Active {
		d.waits.wake(old)
	}
}

// wait blocks while the request would take a new address although a terminating pod of the same claim
// will free a suitable one. In a rolling update the new pod often asks before the old one has gone: it waits, and gets
// the old one's address. One request waits for one pod. When it has waited it returns errStale, so that the attempt
// begins anew. kept means that pods are terminating, and that the request need not wait for one, as all that it lacks
// is kept for its claim already.
func (d *departures) wait(ctx context.Context, t *attempt, want ipam.PickRequest) (kept bool, err error) {
	pods, err := d.of(ctx, t, want) // before the index is asked: what is given up after this is kept by then
	if err != nil || len(pods) == 0 {
		return false, err
	}
	picks, refusal := d.engine.index.Propose(want, d.engine.leases.Now())
	lacks := newPicks(picks)
	if refusal != nil || len(lacks) == 0 {
		return refusal == nil, nil
	}
	w, ok := d.waits.join(slices.DeleteFunc(pods, func(e terminatingPod) bool { return !e.replaces(lacks) }),
		want.IfName)
	if !ok {
		return false, nil // others wait for all of them
	}
	defer d.waits.leave(w)
	for d.current(w.pod, want).replaces(lacks) {
		left := time.Until(t.waitUntil)
		if left <= 0 {
			return false, waitsForPod(t, w.pod)
		}
		end := d.engine.leases.Begin(ctx, store.StageEnding)
		select {
		case <-w.freed:
		case <-time.After(min(left, waitPoll)):
		case <-ctx.Done():
		}
		end(nil)
		switch {
		case ctx.Err() != nil:
			return false, unavailable(ctx.Err())
		case d.engine.overtaken(t):
			return false, deleted(t.Request)
		}
		// else no free address is left: it goes on waiting for what it lacked
		if picks, refusal := d.engine.index.Propose(want, d.engine.leases.Now()); refusal == nil {
			lacks = newPicks(picks)
		}
	}
	return false, errStale
}

// ofApp reports whether an address stays with the app, for whichever of its pods comes next.
func (t Constraints) ofApp() bool { return t.KeptOnRelease() && t.PodPrimaryKey == "" }

// newPicks returns the picks of addresses that are kept for nobody.
func newPicks(picks []ipam.Pick) []ipam.Pick {
	return slices.DeleteFunc(slices.Clone(picks), func(p ipam.Pick) bool { return p.Current.State != lease.Available })
}

// terminatingPod is a pod that is being deleted, or has gone without a DEL, with those of its addresses that would do
// for a request.
type terminatingPod struct {
	pod workload.Pod
	has []lease.Lease
}

// replaces reports whether one of the addresses would do in the place of one of some picks.
func (e terminatingPod) replaces(picks []ipam.Pick) bool {
	return slices.ContainsFunc(e.has, func(l lease.Lease) bool {
		return slices.ContainsFunc(picks, func(p ipam.Pick) bool {
			return p.Slot == l.Slot && ipaddr.FamilyOf(p.Current.Addr) == ipaddr.FamilyOf(l.Addr)
		})
	})
}

// of returns the terminating pods of the request's claim; first the one that should end first. It returns none
// for a request that does not wait: one of no app, one that has an address, and one that asks for certain addresses.
func (d *departures) of(
	ctx context.Context, t *attempt, want ipam.PickRequest,
) (all []terminatingPod, err error) {
	if !t.constraints.ofApp() || len(want.Have) > 0 || len(want.Addrs) > 0 {
		return nil, nil
	}
	pods, err := d.engine.pods.Ending(ctx, t.Namespace, t.podVersion, func(uid string) bool {
		return d.engine.index.Leases.HasOfClaim(lease.Holder{PodUID: uid, IfName: want.IfName}, want.Claim)
	})
	if err != nil {
		return nil, readFailed(err)
	}
	for _, pod := range pods {
		if e := d.current(pod, want); len(e.has) > 0 {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(x, y terminatingPod) int {
		return cmp.Or(endsBy(x.pod).Compare(endsBy(y.pod)), cmp.Compare(x.pod.Name, y.pod.Name))
	})
	return all, nil
}

// current returns a terminating pod with what it has at present: nothing, once it should have ended.
func (d *departures) current(pod workload.Pod, want ipam.PickRequest) terminatingPod {
	if !d.engine.leases.Now().Before(endsBy(pod)) {
		return terminatingPod{pod, nil}
	}
	has := d.engine.index.Leases.ByAttachment(lease.Holder{
		Namespace: pod.Namespace, PodName: pod.Name, PodUID: pod.UID, IfName: want.IfName,
	})
	return terminatingPod{pod, slices.DeleteFunc(has, func(l lease.Lease) bool { return !d.wouldDo(l, want) })}
}

// endsBy returns when the address of a pod that is being deleted should be free.
func endsBy(pod workload.Pod) time.Time {
	by, most := pod.EndsBy, pod.DeletedAt.Add(terminatingMost)
	if most.Before(by) {
		by = most
	}
	return by.Add(terminatingSlack)
}

// wouldDo reports whether the request could use an address of its claim once the pod that has it gives it up.
func (d *departures) wouldDo(l lease.Lease, want ipam.PickRequest) bool {
	if l.State != lease.Active || l.Claim != want.Claim || l.PodPrimaryKey != "" || !l.KeptOnRelease() || l.Deleting {
		return false
	}
	_, ok, refusal := d.engine.index.TakeOverParams(want, l)
	return ok && refusal == nil
}
