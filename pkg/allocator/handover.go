package allocator

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/explain"
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

// handover gives the request an address that another pod of its claim leaves. With a primary key, that is the address
// of the key's earlier pod, which is gone. Without one, it is that of a pod which is terminating: the request waits for
// it.
func (a *Allocator) handover(ctx context.Context, t *attempt) (err error) {
	if !complete(t.held) && t.constraints.PodPrimaryKey != "" {
		if err := a.takeOver(ctx, t); err != nil {
			return err
		}
	}
	if !complete(t.held) && len(t.prefer) == 0 {
		t.kept, err = a.waitForTerminating(ctx, t, t.want(t.held))
	}
	return err
}

// waitForTerminating blocks while the request would take a new address although a terminating pod of the same claim
// will free a suitable one. In a rolling update the new pod often asks before the old one has gone: it waits, and gets
// the old one's address. One request waits for one pod. When it has waited it returns errStale, so that the attempt
// begins anew. kept means that pods are terminating, and that the request need not wait for one, as all that it lacks
// is kept for its claim already.
func (a *Allocator) waitForTerminating(ctx context.Context, t *attempt, want ipam.PickRequest) (kept bool, err error) {
	pods, err := a.terminating(ctx, t, want) // before the index is asked: what is given up after this is kept by then
	if err != nil || len(pods) == 0 {
		return false, err
	}
	picks, refusal := a.index.Propose(want, a.leases.Now())
	lacks := newPicks(picks)
	if refusal != nil || len(lacks) == 0 {
		return refusal == nil, nil
	}
	w, ok := a.waits.join(slices.DeleteFunc(pods, func(e terminatingPod) bool { return !e.replaces(lacks) }),
		want.IfName)
	if !ok {
		return false, nil // others wait for all of them
	}
	defer a.waits.leave(w)
	for a.stillTerminating(w.pod, want).replaces(lacks) {
		left := time.Until(t.waitUntil)
		if left <= 0 {
			return false, waitsForPod(t, w.pod)
		}
		end := a.leases.Begin(ctx, store.StageEnding)
		select {
		case <-w.freed:
		case <-time.After(min(left, waitPoll)):
		case <-ctx.Done():
		}
		end(nil)
		switch {
		case ctx.Err() != nil:
			return false, unavailable(ctx.Err())
		case a.overtaken(t):
			return false, deleted(t.Request)
		}
		// else no free address is left: it goes on waiting for what it lacked
		if picks, refusal := a.index.Propose(want, a.leases.Now()); refusal == nil {
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

// terminating returns the terminating pods of the request's claim; first the one that should end first. It returns none
// for a request that does not wait: one of no app, one that has an address, and one that asks for certain addresses.
func (a *Allocator) terminating(
	ctx context.Context, t *attempt, want ipam.PickRequest,
) (all []terminatingPod, err error) {
	if !t.constraints.ofApp() || len(want.Have) > 0 || len(want.Addrs) > 0 {
		return nil, nil
	}
	pods, err := a.pods.Ending(ctx, t.Namespace, t.podVersion, func(uid string) bool {
		return a.index.Leases.HasOfClaim(lease.Holder{PodUID: uid, IfName: want.IfName}, want.Claim)
	})
	if err != nil {
		return nil, readFailed(err)
	}
	for _, pod := range pods {
		if e := a.stillTerminating(pod, want); len(e.has) > 0 {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(x, y terminatingPod) int {
		return cmp.Or(endsBy(x.pod).Compare(endsBy(y.pod)), cmp.Compare(x.pod.Name, y.pod.Name))
	})
	return all, nil
}

// stillTerminating returns a terminating pod with what it has at present: nothing, once it should have ended.
func (a *Allocator) stillTerminating(pod workload.Pod, want ipam.PickRequest) terminatingPod {
	if !a.leases.Now().Before(endsBy(pod)) {
		return terminatingPod{pod, nil}
	}
	has := a.index.Leases.ByAttachment(lease.Holder{PodUID: pod.UID, IfName: want.IfName})
	return terminatingPod{pod, slices.DeleteFunc(has, func(l lease.Lease) bool { return !a.wouldDo(l, want) })}
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
func (a *Allocator) wouldDo(l lease.Lease, want ipam.PickRequest) bool {
	if l.State != lease.Active || l.Claim != want.Claim || l.PodPrimaryKey != "" || !l.KeptOnRelease() || l.Deleting {
		return false
	}
	_, ok, refusal := a.index.TakeOverParams(want, l)
	return ok && refusal == nil
}

// waitsForPod refuses a request that has waited for a pod in vain.
func waitsForPod(t *attempt, pod workload.Pod) *ipam.Refusal {
	return ipam.RefuseFacts(ipam.ReasonClaimConflict, explain.Facts{
		Kind: explain.EarlierPodIsEnding, Who: t.who(), Claim: t.constraints.Claim, Pod: pod.Namespace + "/" + pod.Name,
		Until: endsBy(pod).UTC(),
	})
}
