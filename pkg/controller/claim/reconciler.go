package claim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/controller/holding"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const (
	// claimDelay is the time for which the changes of a claim's addresses are gathered. It is longer by claimDelayEach
	// for each address that the claim has, up to maxClaimDelay.
	claimDelay, claimDelayEach, maxClaimDelay = 200 * time.Millisecond, time.Millisecond, 5 * time.Second
	// askEvery is the interval in which a workload's needs are read while its claim keeps addresses, even if no change
	// was seen.
	askEvery = 20 * time.Second
)

// Reconciler creates the claims that annotations request, returns kept addresses that are no longer needed, and
// publishes the claims' status. It never takes an address that a pod has.
type Reconciler struct {
	Config
	published holding.Publisher
}

// Config has the dependencies and settings of a Reconciler.
type Config struct {
	Client client.Client
	// Live reads from the API server, not from a cache.
	Live        client.Reader
	Index       *index.Index
	Leases      *store.Client
	Owners      *workload.Owners
	Policies    claim.Policies
	Constraints allocator.ConstraintsFinder
	Stocker     claim.Preallocator
	// Namespace has the claims of shared pools for all namespaces. SharedForAll: every shared pool is one.
	Namespace    string
	SharedForAll bool
	// IPAMClaims reports whether the status of IPAMClaims is maintained. ClaimsFor returns the claims that somebody
	// created for one.
	IPAMClaims bool
	ClaimsFor  func(context.Context, workload.Workload) ([]string, error)
	Events     events.EventRecorder
	Terms      *leadership.Terms
	States     *States
	Budget     *conditions.Budget
	Ready      func() error
	Log        *slog.Logger
}

// New returns a reconciler that receives every change of the index and of workloads. It does nothing before its Setup.
func New(o Config) *Reconciler {
	r := &Reconciler{Config: o, published: holding.Publisher{What: "the status of IPAMClaims", Log: o.Log}}
	o.Index.Feed.Subscribe(r.leaseChanged)
	o.Owners.Changed = o.States.workloadChanged
	o.Terms.OnTerm(r.onTerm)
	return r
}

// Setup registers the reconciler for every change of a claim and of its addresses.
func (r *Reconciler) Setup(mgr ctrl.Manager) error {
	return r.States.queue.Serve(mgr, "claim", &v1.BCSNetIPClaim{}, r)
}

// onTerm queues all claims at the beginning of a term, and keeps the retentions of pods' addresses up to date until the
// term ends.
func (r *Reconciler) onTerm(ctx context.Context) error {
	if !leadership.AwaitReady(ctx, r.Ready) {
		return nil
	}
	r.States.queue.Open(ctx)
	var all v1.BCSNetIPClaimList
	if err := r.Client.List(ctx, &all); err != nil {
		return err
	}
	r.States.learn(all.Items)
	for i := range all.Items {
		r.States.enqueue(all.Items[i].Namespace+"/"+all.Items[i].Name, 0)
	}
	for _, l := range r.Index.Leases.Find(func(l lease.Lease) bool { return l.Claim != "" }) {
		r.States.enqueue(l.Claim, claimDelay)
	}
	r.ipamClaims(ctx)
	r.syncRetentions(ctx)
	return nil
}

func nameOf(claim string) types.NamespacedName {
	namespace, name, _ := strings.Cut(claim, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// leaseChanged handles a change of the index.
func (r *Reconciler) leaseChanged(old, l lease.Lease) {
	if r.Terms.Leading() {
		r.States.enqueue(l.Claim, r.gathering(l.Claim))
		if old.Claim != l.Claim {
			r.States.enqueue(old.Claim, r.gathering(old.Claim))
		}
	}
	if holding.Frees(old, l) {
		r.States.enqueueAll(r.States.short.Wake(""))
	}
}

// gathering returns the time for which the changes of a claim's addresses are gathered: it grows with the number of
// addresses, because a reconciliation scans all of them.
func (r *Reconciler) gathering(name string) time.Duration {
	if name == "" {
		return 0
	}
	return min(claimDelay+time.Duration(r.Index.Leases.CountClaimed(name))*claimDelayEach, maxClaimDelay)
}

// Reconcile reconciles one claim.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, leave, leads := r.Terms.Join(ctx)
	if !leads {
		return reconcile.Result{}, nil
	}
	defer leave()
	if r.Ready() != nil {
		return reconcile.Result{RequeueAfter: leadership.NotReadyDelay}, nil
	}
	name := req.Namespace + "/" + req.Name
	leases := r.Index.Leases.ByClaim(name)
	var o v1.BCSNetIPClaim
	switch err := r.Client.Get(ctx, req.NamespacedName, &o); {
	case apierrors.IsNotFound(err):
		return r.reconcileAbsent(ctx, name, leases)
	case err != nil:
		return reconcile.Result{}, err
	}
	c, problem := claim.FromObject(&o)
	return r.reconcile(ctx, &scope{object: &o, claim: c, problem: problem, leases: leases})
}

// reconcileAbsent creates a claim that does not exist if a pod's annotations request it, and otherwise returns
// addresses that were preallocated for it.
func (r *Reconciler) reconcileAbsent(ctx context.Context, name string, leases []lease.Lease) (reconcile.Result, error) {
	r.States.forget(name)
	r.Budget.Forget(budgetName(name))
	again, err := r.create(ctx, name, leases)
	if err != nil {
		return reconcile.Result{}, err
	}
	next, err := r.reclaimUnclaimed(ctx, name, leases)
	again = leadership.Sooner(next, again)
	if w, ok := r.Owners.IPAMClaimOf(nameOf(name).Namespace, nameOf(name).Name); ok && err == nil {
		again = leadership.Sooner(again, r.publishIPAMClaim(ctx, w))
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// reconcile takes an existing claim through its phases, and publishes the outcome.
func (r *Reconciler) reconcile(ctx context.Context, s *scope) (reconcile.Result, error) {
	if done, err := r.syncObject(ctx, s); err != nil || done {
		return reconcile.Result{}, err
	}
	phases := []phase{r.reclaim, r.preallocate, r.findProblems}
	if s.problem != nil { // the API server no longer accepts such a spec
		phases = nil
	} else {
		r.States.remember(s.claim.Name, s.claim.Workload)
		r.States.there(s.claim)
	}
	var result reconcile.Result
	for _, do := range phases {
		next, err := do(ctx, s)
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("claim %s: %w", s.claim.Name, err)
		}
		result.RequeueAfter = leadership.Sooner(result.RequeueAfter, next.RequeueAfter)
	}
	wait, err := r.publish(ctx, s)
	if err != nil {
		return reconcile.Result{}, err
	}
	wait = leadership.Sooner(wait, r.publishIPAMClaim(ctx, s.claim.Workload))
	if err := errors.Join(s.untaken, s.unknown); err != nil { // the error causes another try
		return reconcile.Result{}, err
	}
	linger := max(0, s.claim.Linger(r.Leases.Now()))
	result.RequeueAfter = leadership.Sooner(leadership.Sooner(result.RequeueAfter, wait), linger)
	return result, nil
}

// scope is one reconciliation of an existing claim: its findings, and the data for its status.
type scope struct {
	object *v1.BCSNetIPClaim
	claim  claim.Claim
	// problem is the reason why its spec cannot be used; nil if it can.
	problem error
	// leases are the claim's leases at the beginning of the reconciliation.
	leases []lease.Lease
	// view is the data to publish.
	view statusView
	// unknown is the reason why the needs of the claim's workload are not known; untaken is the reason why addresses
	// could not be preallocated. Either is shown, and then causes another reconciliation.
	unknown, untaken error
}

// phase carries out one task for a claim, and returns when to reconcile it again. After an error, no other phase
// follows, and nothing is published.
type phase func(ctx context.Context, s *scope) (reconcile.Result, error)

// failure is the reason why an operation for a claim failed, such as taking its addresses.
type failure struct{ reason, message string }

// failures has the reason of the last failure, and the failure shown in the claim's status.
type failures struct {
	last  string
	shown *failure
}

// next returns the failures after another attempt. The status shows only an error that occurs twice in a row. It keeps
// the first message, because later ones would only vary it, and each changed status would cause another reconciliation
// at once.
func (f failures) next(err error) failures {
	if err == nil {
		return failures{}
	}
	now := failure{string(ipam.ReasonInternal), err.Error()}
	if refusal, ok := errors.AsType[*ipam.Refusal](err); ok {
		now = failure{string(refusal.Reason), refusal.Message}
	}
	if f.last == now.reason && (f.shown == nil || f.shown.reason != now.reason) {
		f.shown = &now
	}
	f.last = now.reason
	return f
}
