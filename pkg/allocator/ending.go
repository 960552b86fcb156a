package allocator

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const (
	// endingMost is how long a pod that is being deleted counts as one that ends, if its grace period is longer: some take
	// hours, and the next ones are not to be missing for so long.
	endingMost = 2 * time.Minute
	// endingSlack is how much longer it counts as that: its containers are killed then, and its DEL follows.
	endingSlack = 5 * time.Second
	// endingWait is how long one request waits for such pods in all: less than the ten seconds after which the plugin of the
	// released system gives up, which tells no deadline. endingSpare is what it leaves of a shorter time of its own.
	endingWait, endingSpare = 8 * time.Second, 2 * time.Second
	// endingLook is how often it looks whether they are ending still.
	endingLook = time.Second
)

// patience is until when a request that begins now waits for pods that are ending.
func patience(ctx context.Context) time.Time {
	until := time.Now().Add(endingWait)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-endingSpare).Before(until) {
		return deadline.Add(-endingSpare)
	}
	return until
}

// giveWay lets a request wait that would take a new address for an app that keeps its addresses, while a pod of the app is
// ending and has one that would do: pods that come before those that they replace have gone find the addresses of
// these. One request waits for one pod. again says that it has waited, and is to look again; kept that pods are ending, and
// that there is one all the same which nobody has to wait for.
func (a *Allocator) giveWay(ctx context.Context, r Request, want ipam.PickRequest) (again, kept bool, err error) {
	ending, err := a.ending(ctx, r, want) // before the index is asked: what is given up after this is kept by then
	if err != nil || len(ending) == 0 {
		return false, false, err
	}
	picks, refusal := a.index.Propose(want, a.leases.Now())
	lacks := newOf(picks)
	if refusal != nil || len(lacks) == 0 {
		return false, refusal == nil, nil
	}
	turn, ok := a.turns.take(slices.DeleteFunc(ending, func(e ender) bool { return !e.replaces(lacks) }), want.IfName)
	if !ok {
		return false, false, nil // others wait for all of them
	}
	defer a.turns.leave(turn)
	for a.still(turn.pod, want).replaces(lacks) {
		left := time.Until(r.waitUntil)
		if left <= 0 {
			return false, false, waitsFor(r, turn.pod)
		}
		end := a.leases.Begin(ctx, store.StageEnding)
		select {
		case <-turn.freed:
		case <-time.After(min(left, endingLook)):
		case <-ctx.Done():
		}
		end(nil)
		switch {
		case ctx.Err() != nil:
			return false, false, unavailable(ctx.Err())
		case a.overtaken(r):
			return false, false, deleted(r)
		}
		if picks, refusal := a.index.Propose(want, a.leases.Now()); refusal == nil { // else somebody took the last new one
			lacks = newOf(picks)
		}
	}
	return true, false, nil
}

// ofApp says whether an address stays for whichever pod of an app comes.
func (t Terms) ofApp() bool { return t.Retained() && t.PodPrimaryKey == "" }

// newOf are the picks of addresses that nobody has kept.
func newOf(picks []ipam.Pick) []ipam.Pick {
	return slices.DeleteFunc(slices.Clone(picks), func(p ipam.Pick) bool { return p.Current.State != ipam.Available })
}

// ender is a pod that is being deleted, or has gone without a DEL, with those of its addresses that would do for a request.
type ender struct {
	pod workload.Pod
	has []ipam.Lease
}

// replaces says whether one of the addresses would do in the place of one of some picks.
func (e ender) replaces(picks []ipam.Pick) bool {
	return slices.ContainsFunc(e.has, func(l ipam.Lease) bool {
		return slices.ContainsFunc(picks, func(p ipam.Pick) bool { return p.Slot == l.Slot && p.Current.Addr.Is4() == l.Addr.Is4() })
	})
}

// ending are the pods of the request's claim that are ending; first that which should end first. There are none for a
// request that is not to wait: one of no app, one that has an address, and one that asks for certain ones.
func (a *Allocator) ending(ctx context.Context, r Request, want ipam.PickRequest) (all []ender, err error) {
	if !r.terms.ofApp() || len(want.Have) > 0 || len(want.Addrs) > 0 {
		return nil, nil
	}
	pods, err := a.pods.Ending(ctx, r.Namespace, r.podVersion, func(uid string) bool {
		return a.index.HasOfClaim(ipam.Holder{PodUID: uid, IfName: want.IfName}, want.Claim)
	})
	if err != nil {
		return nil, readFailed(err)
	}
	for _, pod := range pods {
		if e := a.still(pod, want); len(e.has) > 0 {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(x, y ender) int {
		return cmp.Or(endsBy(x.pod).Compare(endsBy(y.pod)), cmp.Compare(x.pod.Name, y.pod.Name))
	})
	return all, nil
}

// still is a pod that ends with what it has at present; that is nothing when it should have ended.
func (a *Allocator) still(pod workload.Pod, want ipam.PickRequest) ender {
	if !a.leases.Now().Before(endsBy(pod)) {
		return ender{pod, nil}
	}
	has := a.index.ByAttachment(ipam.Holder{PodUID: pod.UID, IfName: want.IfName})
	return ender{pod, slices.DeleteFunc(has, func(l ipam.Lease) bool { return !a.leaves(l, want) })}
}

// endsBy is when the address of a pod that is being deleted should be free.
func endsBy(pod workload.Pod) time.Time {
	by, most := pod.EndsBy, pod.DeletedAt.Add(endingMost)
	if most.Before(by) {
		by = most
	}
	return by.Add(endingSlack)
}

// leaves says whether an address that a pod of a claim has would do for a request once that pod gives it up.
func (a *Allocator) leaves(l ipam.Lease, want ipam.PickRequest) bool {
	if l.State != ipam.Active || l.Claim != want.Claim || l.PodPrimaryKey != "" || !l.Retained() || l.Deleting {
		return false
	}
	_, ok, refusal := a.index.TakeOverParams(want, l)
	return ok && refusal == nil
}

func waitsFor(r Request, pod workload.Pod) *ipam.Refusal {
	return ipam.Refuse(ipam.ReasonClaimConflict, "%s is to get the address of an earlier pod of claim %s: %s/%s, which was deleted, still has it", r.who(), r.terms.Claim, pod.Namespace, pod.Name).
		WithHint("it gets that address once %s has ended, or another one at %s, or before that where others wait for all that are ending", pod.Name, endsBy(pod).UTC().Format(time.RFC3339))
}

// turns are the requests that wait, by the interface of the pod that each of them waits for.
type turns struct {
	mu sync.Mutex
	by map[string]*turn
}

type turn struct {
	key   string
	pod   workload.Pod
	freed chan struct{} // gets a value when the pod gives up an address
}

func newTurns() *turns { return &turns{by: map[string]*turn{}} }

func turnKey(podUID, ifName string) string { return podUID + "/" + ifName }

// take has a request wait for the first of some pods that none waits for yet; ok is false where there is none.
func (t *turns) take(pods []ender, ifName string) (w *turn, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range pods {
		if key := turnKey(e.pod.UID, ifName); t.by[key] == nil {
			w = &turn{key, e.pod, make(chan struct{}, 1)}
			t.by[key] = w
			return w, true
		}
	}
	return nil, false
}

func (t *turns) leave(w *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.by, w.key)
}

// wake tells who waits for an address that its pod gave it up.
func (t *turns) wake(l ipam.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.by[turnKey(l.PodUID, l.IfName)]; w != nil {
		select {
		case w.freed <- struct{}{}:
		default:
		}
	}
}
