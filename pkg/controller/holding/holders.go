package holding

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/controller/informers"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const (
	// waitEvery is the interval in which an object that lacks an address tries again, even if no address was seen to
	// become free: cooldowns end.
	waitEvery = 20 * time.Second
	// wakeDelay is the time for which changes that may help waiting objects are gathered.
	wakeDelay = 50 * time.Millisecond
)

// Config has the dependencies of Holders.
type Config struct {
	Index    *index.Index
	Leases   *store.Client
	Adder    *allocator.Adder
	Releaser *allocator.Releaser
	Terms    *leadership.Terms
	Ready    func() error
	Log      *slog.Logger
}

// Holders are the objects of one kind that hold addresses under the names of owners. The leader reconciles them: after
// each of their changes, for each of their leases when a term begins, and while they wait, when an address becomes
// free.
type Holders struct {
	Config
	Kind workload.OwnerKind
	// Reconcile reconciles the object of a name, which may be gone, and returns the time after which to do so again; 0
	// for never.
	Reconcile func(context.Context, types.NamespacedName) (time.Duration, error)
	// Known returns the names of the objects that exist.
	Known func() []types.NamespacedName

	queue   *leadership.Queue
	waiting Waiting
}

// Setup registers the holders. kind is the one that the manager's cache watches; nil if others deliver the changes, by
// Changed.
func (h *Holders) Setup(ctx context.Context, mgr ctrl.Manager, kind client.Object) error {
	h.queue = leadership.NewQueue(h.Terms)
	h.Index.Feed.Subscribe(h.leaseChanged)
	h.Terms.OnTerm(h.onTerm)
	return errors.Join(h.wakeByPools(ctx, mgr.GetCache()),
		h.queue.Serve(mgr, string(h.Kind), kind, reconcile.Func(h.reconcile)))
}

// leaseChanged wakes those who wait for an address that is free now, and looks after an object that has lost one.
func (h *Holders) leaseChanged(old, l lease.Lease) {
	if Frees(old, l) {
		h.wake(h.Index.Pools.CountedAs(l.Pool))
	}
	if old.State != lease.Active || old.Owner == l.Owner {
		return
	}
	for _, owner := range []string{old.Owner, l.Owner} { // it may have been passed on
		if o, ok := workload.ParseOwner(owner); ok && o.Kind == h.Kind {
			h.queue.Add(types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, wakeDelay)
		}
	}
}

// wakeByPools wakes the waiting objects when a pool has changed: it may have addresses for them now.
func (h *Holders) wakeByPools(ctx context.Context, pools cache.Cache) error {
	_, err := informers.Watch(ctx, pools, &v1.BCSNetPool{},
		informers.SpecHandler(func(*v1.BCSNetPool) { h.wake("") }, nil))
	return err
}

// wake queues the objects that wait for a pool; empty for all.
func (h *Holders) wake(pool string) {
	for _, name := range h.waiting.Wake(pool) {
		h.queue.Add(nameOf(name), wakeDelay)
	}
}

// Changed queues an object for reconciliation after a delay.
func (h *Holders) Changed(name types.NamespacedName, after time.Duration) { h.queue.Add(name, after) }

// onTerm queues all objects, and those of all leases, at the beginning of a term.
func (h *Holders) onTerm(ctx context.Context) error {
	if !leadership.AwaitReady(ctx, h.Ready) {
		return nil
	}
	h.queue.Open(ctx)
	for _, name := range h.Known() {
		h.queue.Add(name, 0)
	}
	h.Index.Leases.Each(func(l lease.Lease) {
		if o, ok := workload.ParseOwner(l.Owner); ok && o.Kind == h.Kind {
			h.queue.Add(types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, 0)
		}
	})
	return nil
}

func (h *Holders) reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, leave, leads := h.Terms.Join(ctx)
	if !leads {
		return reconcile.Result{}, nil
	}
	defer leave()
	if h.Ready() != nil {
		return reconcile.Result{RequeueAfter: leadership.NotReadyDelay}, nil
	}
	h.waiting.Set(req.String(), false)
	again, err := h.Reconcile(ctx, req.NamespacedName)
	return reconcile.Result{RequeueAfter: again}, err
}

// Owner returns the owner of an object's leases.
func (h *Holders) Owner(name types.NamespacedName) string {
	return workload.OwnerObject{Kind: h.Kind, Namespace: name.Namespace, Name: name.Name}.String()
}

// Held returns the leases of an object by the index.
func (h *Holders) Held(name types.NamespacedName) []lease.Lease {
	return slices.DeleteFunc(h.Index.Leases.ByAttachment(lease.Holder{Owner: h.Owner(name)}),
		func(l lease.Lease) bool { return l.State != lease.Active })
}

// Wait makes an object be reconciled again after the next change of a pool, or when an address becomes free.
func (h *Holders) Wait(name types.NamespacedName) { h.waiting.Set(name.String(), true) }

// Take gives an object what it lacks of a request, and returns all that it has. A refusal is one that lasts until
// somebody changes something, or gives an address up: then the object waits, and again is the time after which to
// ask again. Others are errors.
func (h *Holders) Take(ctx context.Context, name types.NamespacedName, r allocator.Request) (
	all []allocator.Address, refusal *ipam.Refusal, again time.Duration, err error,
) {
	ctx, cancel := context.WithTimeout(ctx, allocator.MaxRequestTime)
	defer cancel()
	r.Owner, r.Namespace, r.ForObject = h.Owner(name), name.Namespace, true
	// Before the index is asked: what becomes free meanwhile must not be missed.
	h.waiting.For(name.String(), h.Index.Pools.CountedAs(r.Pool))
	all, err = h.Adder.Allocate(ctx, r)
	why, refused := errors.AsType[*ipam.Refusal](err)
	if refused && !passing(why.Reason) {
		return nil, why, waitEvery, nil
	}
	h.waiting.Set(name.String(), false)
	return all, nil, 0, err
}

// passing reports whether a refusal is not an answer for the object: asking again in a moment gives another one.
func passing(r ipam.Reason) bool {
	switch r {
	case ipam.ReasonUnavailable, ipam.ReasonOutcomeUnknown, ipam.ReasonOverloaded, ipam.ReasonInternal,
		ipam.ReasonForbidden, ipam.ReasonContainerDeleted:
		return true
	default:
		return false
	}
}

// GiveBack frees all that an object holds. What a write of unknown outcome gives it later is freed, too.
func (h *Holders) GiveBack(ctx context.Context, name types.NamespacedName, why string) error {
	freed, err := h.Releaser.Release(ctx, allocator.ReleaseRequest{Owner: h.Owner(name)})
	for _, l := range freed {
		h.Log.Info("an address was released", "address", l.Addr.String(), "holder", l.Owner, "reason", why)
	}
	return err
}

// GiveBackOthers frees what an object holds apart from some addresses.
func (h *Holders) GiveBackOthers(ctx context.Context, name types.NamespacedName, keep []netip.Addr) error {
	for _, l := range h.Held(name) {
		if slices.Contains(keep, l.Addr) {
			continue
		}
		if _, err := allocator.FreeLease(ctx, h.Leases, l, lease.Change{}, l.SameHolding); err != nil {
			return err
		}
		h.Log.Info("an address was released", "address", l.Addr.String(), "holder", l.Owner, "reason",
			"it asks for another one")
	}
	return nil
}

func nameOf(text string) (n types.NamespacedName) {
	n.Namespace, n.Name, _ = strings.Cut(text, "/")
	return n
}
