package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go4.org/netipx"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const (
	// claimDelay gathers the changes of a claim's addresses, claimDelayEach longer for each that it has, but for no longer than
	// maxClaimDelay.
	claimDelay, claimDelayEach, maxClaimDelay = 200 * time.Millisecond, time.Millisecond, 5 * time.Second
	// askEvery is how often a workload is asked what it needs while its claim keeps addresses, whether or not a change
	// of it was heard of.
	askEvery = 20 * time.Second
)

// claimReconciler makes the claims that annotations ask for, gives back what they keep and need no more, and
// publishes what they have. Addresses that pods have are never taken.
type claimReconciler struct {
	client   client.Client
	index    *ipam.Index
	leases   *store.Client
	owners   *workload.Owners
	policies claim.Policies
	terms    allocator.ConstraintsFinder
	system   string               // the namespace of the claims of shared pools
	alloc    *allocator.Allocator // set before the manager starts
	live     client.Reader
	events   events.EventRecorder
	leads    *leadership.Terms
	ready    func() error
	queue    *leadership.Queue
	budget   *conditions.Budget
	log      *slog.Logger

	mu sync.Mutex
	// gone is since when the workload of a claim has been seen not to exist.
	gone map[string]goneSince
	// wanted are the policies whose claims were not there when their pods asked.
	wanted map[string]workload.Policy
	// of are the claims of a workload, which has no UID here.
	of map[workload.Workload]map[string]struct{}
	// workloads are the same the other way about: the workload of each claim.
	workloads map[string]workload.Workload
	// migrated are the claims of workloads of which a pod was seen that draws its addresses from another, or none.
	migrated map[string]struct{}
	// short are the claims that wait for addresses to become free.
	short map[string]struct{}
	// failing are the claims that could not take their addresses the last time, unasked those whose workload could not be
	// asked what it needs.
	failing, unasked map[string]failures
	// known is what was seen last of the owners of claims that somebody made.
	known map[string]ownerView
	// named are the addresses that claims name, by claim.
	named map[string]*netipx.IPSet
	// unclaimed is since when a claim has been seen not to exist that keeps addresses which no pod had yet.
	unclaimed map[string]time.Time
}

func newClaimReconciler(mgr ctrl.Manager, index *ipam.Index, leases *store.Client, owners *workload.Owners, policies claim.Policies, terms allocator.ConstraintsFinder, system string, leads *leadership.Terms, budget *conditions.Budget, log *slog.Logger) *claimReconciler {
	r := &claimReconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), index: index, leases: leases, owners: owners, policies: policies, terms: terms, system: system,
		events: mgr.GetEventRecorder("bcsnet-controller"), leads: leads, queue: leadership.NewQueue(leads), budget: budget, log: log,
		gone: map[string]goneSince{}, wanted: map[string]workload.Policy{}, of: map[workload.Workload]map[string]struct{}{}, workloads: map[string]workload.Workload{}, short: map[string]struct{}{}, failing: map[string]failures{}, unasked: map[string]failures{}, unclaimed: map[string]time.Time{}, migrated: map[string]struct{}{}, known: map[string]ownerView{}, named: map[string]*netipx.IPSet{},
	}
	index.Subscribe(r.leaseChanged)
	owners.Changed = r.workloadChanged
	leads.OnTerm(r.lead)
	return r
}

// setup registers the reconciler for every change of a claim and of its addresses.
func (r *claimReconciler) setup(mgr ctrl.Manager, ready func() error) error {
	r.ready = ready
	return r.queue.Serve(mgr, "claim", &v1.BCSNetIPClaim{}, r)
}

// lead has all claims looked at when a term begins, and takes pods into their claims until it ends.
func (r *claimReconciler) lead(ctx context.Context) error {
	if !leadership.AwaitReady(ctx, r.ready) {
		return nil
	}
	var all v1.BCSNetIPClaimList
	if err := r.client.List(ctx, &all); err != nil {
		return err
	}
	r.learn(all.Items)
	for i := range all.Items {
		r.enqueue(all.Items[i].Namespace+"/"+all.Items[i].Name, 0)
	}
	for _, l := range r.index.Find(func(l ipam.Lease) bool { return l.Claim != "" }) {
		r.enqueue(l.Claim, claimDelay)
	}
	r.adopt(ctx)
	return nil
}

func (r *claimReconciler) enqueue(name string, after time.Duration) { r.queue.Add(nameOf(name), after) }

func nameOf(claim string) types.NamespacedName {
	namespace, name, _ := strings.Cut(claim, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// leaseChanged is told of every change of the index.
func (r *claimReconciler) leaseChanged(old, l ipam.Lease) {
	if r.leads.Leading() {
		r.enqueue(l.Claim, r.gathering(l.Claim))
		if old.Claim != l.Claim {
			r.enqueue(old.Claim, r.gathering(old.Claim))
		}
	}
	if l.State == ipam.Available && (old.State != ipam.Available || old.Version == 0) {
		r.freed()
	}
}

// gathering is for how long the changes of a claim's addresses are gathered: the longer, the more it has, as all are looked
// at then.
func (r *claimReconciler) gathering(name string) time.Duration {
	if name == "" {
		return 0
	}
	return min(claimDelay+time.Duration(r.index.CountClaimed(name))*claimDelayEach, maxClaimDelay)
}

// workloadChanged has the claims of a workload looked at that was scaled, deleted or annotated.
func (r *claimReconciler) workloadChanged(w workload.Workload) {
	r.mu.Lock()
	claims := slices.Collect(maps.Keys(r.of[w]))
	r.mu.Unlock()
	for _, name := range claims {
		r.enqueue(name, claimDelay)
	}
}

// remember takes note whose claim it is; an empty Kind forgets the claim. Others of the workload are looked at again.
func (r *claimReconciler) remember(name string, w workload.Workload) {
	r.mu.Lock()
	before, known := r.workloads[name]
	if known && before == w {
		r.mu.Unlock()
		return
	}
	var others []string
	if known { // a claim that went, or was made anew
		claims := r.of[before]
		if delete(claims, name); len(claims) == 0 {
			delete(r.of, before)
		}
		others = slices.AppendSeq(others, maps.Keys(claims))
	}
	if w.Kind == "" {
		delete(r.workloads, name)
		delete(r.gone, name)
		delete(r.migrated, name)
		delete(r.known, name)
	} else {
		others = slices.AppendSeq(others, maps.Keys(r.of[w]))
		if r.of[w] == nil {
			r.of[w] = map[string]struct{}{}
		}
		r.of[w][name] = struct{}{}
		r.workloads[name] = w
	}
	r.mu.Unlock()
	for _, other := range others {
		r.enqueue(other, claimDelay)
	}
}

// Reconcile brings one claim up to date.
func (r *claimReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, leave, leads := r.leads.Join(ctx)
	if !leads {
		return reconcile.Result{}, nil
	}
	defer leave()
	if r.ready() != nil {
		return reconcile.Result{RequeueAfter: leadership.NotReadyDelay}, nil
	}
	name := req.Namespace + "/" + req.Name
	leases := r.index.ByClaim(name)
	var o v1.BCSNetIPClaim
	switch err := r.client.Get(ctx, req.NamespacedName, &o); {
	case apierrors.IsNotFound(err):
		r.remember(name, workload.Workload{})
		r.budget.Forget(claimStatus(name))
		r.rivals(name, nil)
		r.failed(r.failing, name, nil)
		r.failed(r.unasked, name, nil)
		again, err := r.make(ctx, name, leases)
		if err != nil {
			return reconcile.Result{}, err
		}
		next, err := r.giveBackUnclaimed(ctx, name, leases)
		return reconcile.Result{RequeueAfter: leadership.Sooner(next, again)}, err
	case err != nil:
		return reconcile.Result{}, err
	}
	c, problem := claim.FromObject(&o)
	if done, err := r.keep(ctx, &o, c, leases); err != nil || done {
		return reconcile.Result{}, err
	}
	if problem != nil { // the API server takes no such spec from now on
		wait, err := r.publish(ctx, &o, c, claimView{leases: leases, problem: problem.Error()})
		return reconcile.Result{RequeueAfter: leadership.Sooner(wait, max(0, c.Linger(r.leases.Now())))}, err
	}
	r.remember(name, c.Workload)
	r.there(c)
	next, unknown, err := r.giveBack(ctx, &o, c, leases)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("claim %s: %w", name, err)
	}
	view, next, workErr := r.preallocate(ctx, &o, c, next)
	owner := r.owner(ctx, c)
	view.problems, next = r.inTheWay(ctx, c, owner.above, next)
	if f := r.failed(r.unasked, name, unknown); f != nil {
		view.problems = append(view.problems, claim.Problem{Reason: string(ipam.ReasonWorkloadUnknown), Message: fmt.Sprintf(
			"what %s needs is not known, and nothing is given back on its account: %s", c.Workload, f.message)})
	}
	view.leases, view.ownerless = r.index.ByClaim(name), owner.missing
	wait, err := r.publish(ctx, &o, c, view)
	if err != nil {
		return reconcile.Result{}, err
	}
	next = leadership.Sooner(leadership.Sooner(next, wait), max(0, c.Linger(r.leases.Now())))
	if err := errors.Join(workErr, unknown); err != nil { // which has it tried again
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: next}, nil
}

// keep sees to the object of a claim: that it carries the finalizer while it is wanted, that one made from annotations
// says what they say, and that it goes when it is deleted, or made from annotations and empty. A claim that is deleted
// waits for all its addresses, and for requests that do not know of it yet; one made from annotations only for those
// that go back, and is made again from those that pods have. Those of pods that are gone, as on a host that is away, could not
// have it made again: they go back when the host has.
func (r *claimReconciler) keep(ctx context.Context, o *v1.BCSNetIPClaim, c claim.Claim, leases []ipam.Lease) (done bool, err error) {
	next := o.DeepCopy()
	switch {
	case c.Deleting:
		held := slices.ContainsFunc(leases, func(l ipam.Lease) bool { return !c.Managed || c.Abandons(l) })
		if held || c.Linger(r.leases.Now()) > 0 || !controllerutil.RemoveFinalizer(next, v1.ClaimFinalizer) {
			return false, nil
		}
		orphans := slices.DeleteFunc(slices.Clone(leases), func(l ipam.Lease) bool { _, there := r.pod(ctx, l); return there })
		if err := r.letGo(ctx, orphans, "its claim is gone"); err != nil {
			return false, err
		}
	case c.Managed && len(leases) == 0:
		return true, client.IgnoreNotFound(r.client.Delete(ctx, o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion}))
	default:
		changed := controllerutil.AddFinalizer(next, v1.ClaimFinalizer)
		if c.Managed {
			// Of a kind that is not served nobody knows what its annotations mean.
			if p, ok := r.policyOf(ctx, c.Name, leases); ok && !p.Named && r.owners.Served(c.Workload) {
				next.Spec = claim.Derive(p, r.owners.APIVersion)
				if now, is := next.Spec.Owner, o.Spec.Owner; now != nil && is != nil && now.Kind == is.Kind && now.Name == is.Name {
					now.APIVersion = is.APIVersion // another version is the same owner, which cannot be changed
				}
				changed = changed || !claim.SameSpec(next.Spec, o.Spec)
			}
		}
		if !changed {
			return false, nil
		}
	}
	err = r.client.Patch(ctx, next, client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		err = nil // a newer one is on its way
	}
	return true, err
}
