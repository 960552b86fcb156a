package allocator

import (
	"context"
	"net/netip"
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
	// endingWait is how long one request waits for such pods; endingSpare is what it leaves of its own time.
	endingWait, endingSpare = 10 * time.Second, 2 * time.Second
	// endingLook is how often it looks whether they are ending still.
	endingLook = time.Second
)

// pick decides on what the request lacks. Where that would be a new address for an app that keeps its addresses, and a pod
// of the app that has one is ending, the request waits for that one: pods that come before those that they
// replace have gone find the addresses of these. As many requests wait as pods are ending, and none longer than
// those may take.
func (a *Allocator) pick(ctx context.Context, r Request, want ipam.Want, prefer []netip.Addr) (picks []ipam.Pick, err error) {
	if !r.terms.ofApp() || len(want.Have) > 0 {
		return a.decide(ctx, want, prefer)
	}
	turn := a.turns.join(want.Claim)
	defer turn.leave()
	wait, cancel := context.WithTimeout(ctx, endingWait)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		wait, cancel = context.WithDeadline(wait, deadline.Add(-endingSpare))
		defer cancel()
	}
	for {
		freed := turn.freed()
		if picks, err = a.decide(ctx, want, prefer); err != nil || !anyNew(want, picks) {
			return picks, err
		}
		ending, err := a.ending(ctx, r, want, picks)
		rank := turn.rank()
		if err == nil && len(ending) <= rank && (!isClosed(freed) || wait.Err() != nil) {
			return picks, nil
		}
		for _, p := range picks {
			a.index.Drop(p.Current.Addr)
		}
		switch {
		case err != nil:
			return nil, err
		case a.overtaken(r):
			return nil, deleted(r)
		case wait.Err() != nil:
			return nil, waitsFor(r, ending[rank])
		}
		end := a.leases.Begin(ctx, store.StageEnding)
		select {
		case <-freed:
		case <-time.After(endingLook):
		case <-wait.Done():
		}
		end(nil)
	}
}

// ofApp says whether an address stays for whichever pod of an app comes.
func (t Terms) ofApp() bool { return t.Claim != "" && t.PodPrimaryKey == "" && t.Fixed }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// anyNew says whether a request would take an address that nobody has kept.
func anyNew(want ipam.Want, picks []ipam.Pick) bool {
	return slices.ContainsFunc(picks, func(p ipam.Pick) bool { return isNew(want, p) })
}

// isNew says whether a pick is an address that nobody has kept, and that was not asked for.
func isNew(want ipam.Want, p ipam.Pick) bool {
	return p.Current.State == ipam.Available && !slices.Contains(want.Addrs, p.Current.Addr)
}

// ending are the pods of the request's claim that are being deleted, or have gone without a DEL, and have an address which
// could take the place of a new one; first that which is to end first.
func (a *Allocator) ending(ctx context.Context, r Request, want ipam.Want, picks []ipam.Pick) (all []workload.Pod, err error) {
	pods, err := a.pods.Ending(ctx, r.Namespace, r.podVersion)
	if err != nil {
		return nil, readFailed(err)
	}
	for _, pod := range pods {
		if !a.leases.Now().Before(endsBy(pod)) {
			continue
		}
		has := a.index.ByAttachment(ipam.Holder{PodUID: pod.UID, IfName: want.IfName})
		if slices.ContainsFunc(has, func(l ipam.Lease) bool { return a.mayInherit(want, picks, l) }) {
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

// mayInherit says whether an address that a pod of the claim has would do in the place of one of the picks that is new.
func (a *Allocator) mayInherit(want ipam.Want, picks []ipam.Pick, l ipam.Lease) bool {
	if l.State != ipam.Active || l.Claim != want.Claim || l.PodPrimaryKey != "" || !slices.ContainsFunc(picks, func(p ipam.Pick) bool {
		return isNew(want, p) && p.Slot == l.Slot && p.Current.Addr.Is4() == l.Addr.Is4()
	}) {
		return false
	}
	_, ok, refusal := a.index.Inherits(want, l)
	return ok && refusal == nil
}

func waitsFor(r Request, pod workload.Pod) *ipam.Refusal {
	return ipam.Refuse(ipam.ReasonClaimConflict, "%s is to get the address of an earlier pod of claim %s: %s/%s, which was deleted, still has it", r.who(), r.terms.Claim, pod.Namespace, pod.Name).
		WithHint("it gets that address once %s has ended, or another one at %s", pod.Name, endsBy(pod).UTC().Format(time.RFC3339))
}

// turns are the requests that wait for addresses of claims, in the order in which they came.
type turns struct {
	mu sync.Mutex
	by map[string]*line
}

type line struct {
	waiting []*turn
	freed   chan struct{} // closed when an address of the claim is given up
}

type turn struct {
	turns *turns
	claim string
}

func newTurns() *turns { return &turns{by: map[string]*line{}} }

func (t *turns) join(claim string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.by[claim]
	if l == nil {
		l = &line{freed: make(chan struct{})}
		t.by[claim] = l
	}
	w := &turn{t, claim}
	l.waiting = append(l.waiting, w)
	return w
}

func (w *turn) leave() {
	w.turns.mu.Lock()
	defer w.turns.mu.Unlock()
	l := w.turns.by[w.claim]
	if l.waiting = slices.DeleteFunc(l.waiting, func(o *turn) bool { return o == w }); len(l.waiting) == 0 {
		delete(w.turns.by, w.claim)
	}
}

// rank is how many wait before this one.
func (w *turn) rank() int {
	w.turns.mu.Lock()
	defer w.turns.mu.Unlock()
	return slices.Index(w.turns.by[w.claim].waiting, w)
}

// freed is closed when an address of the claim is given up from now on.
func (w *turn) freed() <-chan struct{} {
	w.turns.mu.Lock()
	defer w.turns.mu.Unlock()
	return w.turns.by[w.claim].freed
}

// wake tells who waits for an address of a claim that one was given up.
func (t *turns) wake(claim string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.by[claim]; l != nil {
		close(l.freed)
		l.freed = make(chan struct{})
	}
}
