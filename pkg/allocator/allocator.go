package allocator

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// PodFinder finds the pod of a request.
type PodFinder interface {
	Find(ctx context.Context, namespace, name, uid string, host netip.Addr) (workload.Pod, error)
	FindLive(ctx context.Context, namespace, name, uid string) (workload.Pod, error)
}

// Pods finds pods by what they are doing, too; workload.Pods is one.
type Pods interface {
	PodFinder
	Ending(ctx context.Context, namespace string, version uint64, match func(uid string) bool) ([]workload.Pod, error)
}

// Allocator answers ADD and DEL.
type Allocator struct {
	index       *ipam.Index
	leases      *store.Client
	pods        Pods
	constraints ConstraintsFinder
	locks       *locks
	tombstones  *tombstones
	unconfirmed *unconfirmed
	releases    atomic.Int32 // DELs under way
	duplicates  *duplicates
	waits       *waitQueue
	catchUps    *catchUps
	// rule tells for how long containers may run whose pod is gone; vanished are the earlier pods of keys that are gone.
	rule     gone.Rule
	vanished *vanished
	log      *slog.Logger
	again    atomic.Uint64
}

// Stats has the counts of an allocator since it was made, and of what is open now.
type Stats struct {
	// Again counts the requests that were decided anew because the index had changed meanwhile.
	Again uint64
	// InDoubt counts the addresses of which a write's outcome is open.
	InDoubt int
}

// Stats reads the counts.
func (a *Allocator) Stats() Stats {
	return Stats{Again: a.again.Load(), InDoubt: len(a.index.Unknown(""))}
}

// New makes an allocator over an index that is fed by the client's feed. Call it before the feed runs.
// One that serves owners only needs neither pods nor constraints; without the latter no pod has any. rule tells for how long containers
// may run whose pod is gone.
func New(
	index *ipam.Index, leases *store.Client, pods Pods, constraints ConstraintsFinder, rule gone.Rule, log *slog.Logger,
) *Allocator {
	a := &Allocator{
		index: index, leases: leases, pods: pods, constraints: constraints, log: log,
		locks: newLocks(), tombstones: newTombstones(leases.Now), unconfirmed: newUnconfirmed(), duplicates: newDuplicates(), waits: newWaitQueue(),
		catchUps: &catchUps{index: index, leases: leases, turn: make(chan struct{}, 1)},
		rule:     rule, vanished: newVanished(),
	}
	index.Subscribe(a.changed)
	return a
}

// maxAttempts bounds how often one request looks again after another writer was faster.
const maxAttempts = 64

// Allocate gives the addresses of an interface: those that it holds already, else free ones. It is
// idempotent: the same request gets the same answer. A *ipam.Refusal says why there is none.
func (a *Allocator) Allocate(ctx context.Context, r Request) ([]Address, error) {
	if r.IfName == "" {
		r.IfName = ipam.DefaultIfName
	}
	r.began, r.waitUntil = a.moment(r.StartedAt, r.ArrivedAt), waitDeadline(ctx)
	r.StartedAt = r.began.counts()
	seen := a.index.Seen()
	end := a.leases.Begin(ctx, store.StageLock)
	release, err := a.locks.acquire(ctx, r.key())
	end(err)
	if err != nil {
		return nil, unavailable(err)
	}
	defer release()
	h, err := a.holder(ctx, &r)
	if err != nil {
		return nil, err
	}
	prefer, err := a.settleDoubts(ctx, r.key())
	if err != nil {
		return nil, err
	}
	caughtUp := false
	for range maxAttempts {
		if a.overtaken(r) {
			return nil, deleted(r)
		}
		before := a.index.Seen()
		held, err := a.attempt(ctx, r, &h, prefer)
		if err != nil && !errors.Is(err, errStale) && !caughtUp {
			caughtUp = true
			err = a.sure(ctx, err, before)
		}
		if err == nil && a.overtaken(r) {
			return nil, a.undo(ctx, r, held)
		}
		if err == nil {
			err = a.renew(ctx, r, held)
		}
		switch {
		case err == nil:
			return a.addresses(r, held, seen), nil
		case !errors.Is(err, errStale):
			return nil, err
		}
		a.again.Add(1)
	}
	return nil, ipam.Refuse(ipam.ReasonUnavailable, "other writers were faster %d times in a row", maxAttempts).
		WithHint("ask again")
}

// errStale reports that the index showed something else than the API server has. The index has been mended: another
// attempt decides anew.
var errStale = errors.New("the index was behind")

// attempt goes once through the protocol.
func (a *Allocator) attempt(ctx context.Context, r Request, h *ipam.Holder, prefer []netip.Addr) ([]ipam.Lease, error) {
	held, err := a.held(ctx, *h)
	if err != nil {
		return nil, err
	}
	if refusal := holdsOther(r, held, a.index); refusal != nil {
		return nil, refusal
	}
	if l, lost := a.index.MissingOf(*h); lost {
		return nil, ipam.Refuse(ipam.ReasonUnavailable, "the object of address %s, which %s holds, was deleted and is being restored", l.Addr, r.who()).
			WithHint("ask again in a moment")
	}
	if r.refused != nil && !complete(held) {
		return nil, r.refused
	}
	for i, l := range held {
		if held[i], err = a.verifyHeld(ctx, r, h, l, len(held)); err != nil {
			return nil, err
		}
	}
	if !complete(held) && r.constraints.PodPrimaryKey != "" {
		if held, err = a.takeOver(ctx, r, *h, held); err != nil {
			return nil, err
		}
	}
	var fresh []ipam.Lease
	if !complete(held) {
		if held, fresh, err = a.take(ctx, r, *h, held, prefer); err != nil {
			return nil, err
		}
	}
	if held, err = a.confirm(ctx, *h, held); err == nil && r.constraints.PodPrimaryKey != "" {
		err = a.preferKept(ctx, r, *h, fresh)
	}
	return held, err
}

// holder is the identity that the request's addresses are held for. It also finds the constraints of the request's pod; why
// these give it nothing is the request's to keep, as what it holds already stays its own.
func (a *Allocator) holder(ctx context.Context, r *Request) (ipam.Holder, error) {
	h := ipam.Holder{
		Host: r.Host, ContainerID: r.ContainerID, IfName: r.IfName,
		Namespace: r.Namespace, PodName: r.PodName, Owner: r.Owner, StartedAt: r.StartedAt,
	}
	if r.Owner != "" {
		return h, nil
	}
	end := a.leases.Begin(ctx, store.StagePod)
	pod, err := a.pods.Find(ctx, r.Namespace, r.PodName, r.PodUID, r.Host)
	end(err)
	if err := unfit(*r, pod, err); err != nil {
		return h, err
	}
	h.PodUID, h.UIDNamed, h.Termination, r.podVersion = pod.UID, r.PodUID != "", pod.LongTermination(), pod.Version
	if a.constraints == nil {
		return h, nil
	}
	if r.constraints, err = a.constraints.Of(ctx, pod); err == nil {
		r.refused = r.agree()
		return h, nil
	}
	var refused bool
	if r.refused, refused = errors.AsType[*ipam.Refusal](err); !refused {
		return h, readFailed(err)
	}
	return h, nil
}

// unfit says why the pod that was found for a request gets no address, nil when it does.
func unfit(r Request, pod workload.Pod, err error) error {
	switch {
	case errors.Is(err, workload.ErrNotFound) && pod.UID != "":
		return ipam.Refuse(ipam.ReasonPodReplaced, "pod %s/%s has UID %s, the request is for %s", r.Namespace, r.PodName, pod.UID, r.PodUID)
	case errors.Is(err, workload.ErrNotFound):
		return ipam.Refuse(ipam.ReasonPodNotFound, "pod %s/%s does not exist", r.Namespace, r.PodName)
	case err != nil:
		return readFailed(err)
	case pod.Ended:
		return ipam.Refuse(ipam.ReasonPodEnded, "pod %s/%s has ended", r.Namespace, r.PodName)
	}
	return nil
}

// addresses adds what the pools say now to the leases of an answer. What is no newer than the watch had seen
// when the request came was held before.
func (a *Allocator) addresses(r Request, held []ipam.Lease, seen uint64) []Address {
	slices.SortFunc(held, func(x, y ipam.Lease) int { return x.Addr.Compare(y.Addr) })
	out := make([]Address, 0, len(held))
	for _, l := range held {
		p, _ := a.index.Pool(l.Pool)
		if g := r.constraints.Gateway; g.IsValid() && netip.PrefixFrom(l.Addr, l.Bits).Contains(g) {
			l.Gateway = g
		}
		out = append(out, Address{Lease: l, Link: p.Link, Repeated: l.Version <= seen})
	}
	return out
}
