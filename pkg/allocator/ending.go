package allocator

import (
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
	// endingWait is how long one request waits for such pods in all; endingSpare is what it leaves of its own time.
	endingWait, endingSpare = 10 * time.Second, 2 * time.Second
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
// these. One request waits for one pod. again says that it has waited, and is to look again.
func (a *Allocator) giveWay(ctx context.Context, r Request, want ipam.Want) (again bool, err error) {
	for {
		ending, err := a.ending(ctx, r, want) // before the index is asked: what is given up after this is kept by then
		if err != nil || len(ending) == 0 {
			return again, err
		}
		if picks, _ := a.index.Propose(want, a.leases.Now()); !anyNew(want, picks) { // there are none with a refusal
			return again, nil
		}
		turn, ok := a.turns.take(ending, want.IfName)
		if !ok {
			return again, nil // others wait for all of them
		}
		left := time.Until(r.waitUntil)
		if left > 0 && ctx.Err() == nil {
			end := a.leases.Begin(ctx, store.StageEnding)
			select {
			case <-turn.freed:
			case <-time.After(min(left, endingLook)):
			case <-ctx.Done():
			}
			end(nil)
		}
		a.turns.leave(turn)
		again = true
		switch {
		case ctx.Err() != nil:
			return again, unavailable(ctx.Err())
		case left <= 0:
			return again, waitsFor(r, turn.pod)
		case a.overtaken(r):
			return again, deleted(r)
		}
	}
}

// ofApp says whether an address stays for whichever pod of an app comes.
func (t Terms) ofApp() bool { return t.Kept() && t.PodPrimaryKey == "" }

// anyNew says whether a request would take an address that nobody has kept, and that it did not ask for.
func anyNew(want ipam.Want, picks []ipam.Pick) bool {
	return slices.ContainsFunc(picks, func(p ipam.Pick) bool {
		return p.Current.State == ipam.Available && !slices.Contains(want.Addrs, p.Current.Addr)
	})
}

// ending are the pods of the request's claim that are being deleted, or have gone without a DEL, and have an address that
// would do for the request; first that which should end first. There are none for a request that is not to wait.
func (a *Allocator) ending(ctx context.Context, r Request, want ipam.Want) (all []workload.Pod, err error) {
	if !r.terms.ofApp() || len(want.Have) > 0 || len(want.Addrs) > 0 {
		return nil, nil
	}
	pods, err := a.pods.Ending(ctx, r.Namespace, r.podVersion)
	if err != nil {
		return nil, readFailed(err)
	}
	now := a.leases.Now()
	for _, pod := range pods {
		if now.Before(endsBy(pod)) && slices.ContainsFunc(a.index.ByAttachment(ipam.Holder{PodUID: pod.UID, IfName: want.IfName}), func(l ipam.Lease) bool { return a.leaves(l, want) }) {
			all = append(all, pod)
		}
	}
	slices.SortFunc(all, func(x, y workload.Pod) int { return endsBy(x).Compare(endsBy(y)) })
	return all, nil
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
func (a *Allocator) leaves(l ipam.Lease, want ipam.Want) bool {
	if l.State != ipam.Active || l.Claim != want.Claim || l.PodPrimaryKey != "" || !l.Kept() || l.Deleting {
		return false
	}
	_, ok, refusal := a.index.Inherits(want, l)
	return ok && refusal == nil
}

func waitsFor(r Request, pod workload.Pod) *ipam.Refusal {
	return ipam.Refuse(ipam.ReasonClaimConflict, "%s is to get the address of an earlier pod of claim %s: %s/%s, which was deleted, still has it", r.who(), r.terms.Claim, pod.Namespace, pod.Name).
		WithHint("it gets that address once %s has ended, or another one at %s", pod.Name, endsBy(pod).UTC().Format(time.RFC3339))
}

// turns are the requests that wait, by the interface of the pod that each of them waits for.
type turns struct {
	mu sync.Mutex
	by map[string]*turn
}

type turn struct {
	key   string
	pod   workload.Pod
	freed chan struct{} // closed when the pod gives up an address
}

func newTurns() *turns { return &turns{by: map[string]*turn{}} }

func turnKey(podUID, ifName string) string { return podUID + "/" + ifName }

// take has a request wait for the first of some pods that none waits for yet; ok is false where there is none.
func (t *turns) take(pods []workload.Pod, ifName string) (w *turn, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, pod := range pods {
		if key := turnKey(pod.UID, ifName); t.by[key] == nil {
			w = &turn{key, pod, make(chan struct{})}
			t.by[key] = w
			return w, true
		}
	}
	return nil, false
}

func (t *turns) leave(w *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by[w.key] == w {
		delete(t.by, w.key)
	}
}

// wake tells who waits for an address that its pod gave it up.
func (t *turns) wake(l ipam.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.by[turnKey(l.PodUID, l.IfName)]; w != nil {
		close(w.freed)
		delete(t.by, w.key)
	}
}
