package pool

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/controller/gc"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

const (
	// behindDelay is the time after which a pool that the index does not have yet is reconciled again.
	behindDelay = 10 * time.Millisecond
	// fullPass is the interval in which the objects of a pool are compared in full even without a hint of a difference.
	fullPass = 10 * time.Minute
)

// Reconciler makes the objects and the status of a pool match its spec.
type Reconciler struct {
	Config

	mu sync.Mutex
	// compared has, by pool, the last comparison that found all objects to match.
	compared map[string]comparison
	// full has the pools without a free address at the last reconciliation.
	full map[string]struct{}
	// nearQuota has, by pool, the namespaces for which an event about their quota was created.
	nearQuota map[string]map[string]bool
	// withheld has, by group, the addresses that it waits to take from its parent.
	withheld map[string]withheld
}

// Config has the dependencies and settings of a Reconciler.
type Config struct {
	Client  client.Client
	Index   *index.Index
	Leases  *store.Client
	Events  events.EventRecorder
	Terms   *leadership.Terms
	Queue   *Queue
	Breaker *gc.Breaker
	Budget  *conditions.Budget
	Ready   func() error
	Log     *slog.Logger
}

// comparison identifies the state with which a pool's objects were compared, and the time.
type comparison struct {
	generation int64
	// served is the index's revision of the addresses that the pool serves.
	served uint64
	at     time.Time
}

// New returns a reconciler that receives every change of the index. It does nothing before its Setup.
func New(o Config) *Reconciler {
	r := &Reconciler{
		Config: o, compared: map[string]comparison{}, full: map[string]struct{}{},
		nearQuota: map[string]map[string]bool{}, withheld: map[string]withheld{},
	}
	o.Index.Feed.Subscribe(r.leaseChanged)
	o.Terms.OnTerm(r.onTerm)
	return r
}

// Setup registers the reconciler for every change of a pool and, gathered, of its leases.
func (r *Reconciler) Setup(mgr ctrl.Manager) error {
	return r.Queue.Serve(mgr, "pool", &v1.BCSNetPool{}, r)
}

// onTerm queues all pools at the beginning of a term, and forgets the data of an earlier term.
func (r *Reconciler) onTerm(ctx context.Context) error {
	if !leadership.AwaitReady(ctx, r.Ready) {
		return nil
	}
	r.mu.Lock()
	clear(r.compared)
	clear(r.nearQuota)
	clear(r.withheld)
	r.mu.Unlock()
	r.Queue.Open(ctx)
	for _, p := range r.Index.Pools.All() {
		r.Queue.Enqueue(p.Name, 0)
	}
	// Pools that were deleted while nobody led may have left objects.
	for _, l := range r.Index.Leases.Find(func(l lease.Lease) bool {
		_, known := r.Index.Pools.Get(l.Pool)
		return !known
	}) {
		r.Queue.Enqueue(l.Pool, 0)
	}
	return nil
}

// leaseChanged handles a change of the index. The full comparison at the beginning of a term covers earlier changes.
func (r *Reconciler) leaseChanged(old, l lease.Lease) {
	if !r.Terms.Leading() {
		return
	}
	serving, _ := r.Index.Pools.PoolOf(l.Addr)
	whole := r.Index.Pools.CountedAs(l.Pool) // the numbers of a block count for this pool
	concerned := []string{whole}
	for _, name := range []string{l.Pool, old.Pool, serving} {
		if !slices.Contains(concerned, name) {
			concerned = append(concerned, name)
		}
	}
	gone := l.Version == 0
	misplaced := gone || l.State == lease.Available && serving != l.Pool
	if l.State != old.State && r.servesOthers(whole) {
		for _, o := range r.Index.Pools.Overlaps(whole) {
			if !slices.Contains(concerned, o.Other) {
				concerned = append(concerned, o.Other)
			}
		}
	}
	if !misplaced && !slices.ContainsFunc(concerned, func(name string) bool {
		return name != whole && name != l.Pool
	}) {
		r.Queue.Enqueue(whole, r.patience(whole))
		if block, _ := r.Index.Pools.Get(l.Pool); block.Block && block.Terminating { // it waits for its own leases
			r.Queue.Enqueue(l.Pool, conditions.WriteDelay)
		}
		return
	}
	for _, name := range concerned {
		if misplaced {
			r.invalidate(name)
		}
		r.Queue.Enqueue(name, conditions.WriteDelay)
	}
}

// servesOthers reports whether a pool serves other addresses than at the last comparison of its objects. If two pools
// share an address, its holder determines which of them serves it.
func (r *Reconciler) servesOthers(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.compared[name]
	return ok && s.served != r.Index.Pools.ServedRevision(name)
}

// patience returns the time after which a pool with changed numbers is reconciled: at once if it has become full or has
// addresses again, else when its status may be written.
func (r *Reconciler) patience(name string) time.Duration {
	r.mu.Lock()
	_, full := r.full[name]
	r.mu.Unlock()
	turned := full != (r.Index.Pools.Counts(name, r.Leases.Now()).Free == 0)
	wait, isEdge := r.Budget.Until(poolStatus(name))
	if turned && !isEdge {
		return 0
	}
	return max(wait, conditions.WriteDelay)
}

// forget removes the data of a deleted pool.
func (r *Reconciler) forget(name string) {
	r.Budget.Forget(poolStatus(name))
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.full, name)
	delete(r.withheld, name)
}

// poolStatus returns the name of a pool's status in the budget.
func poolStatus(name string) string { return "pool/" + name }

// Changed changes a pool in the index, and queues it, its parent and children, and the pools that shared addresses with
// it before or after the change.
func (r *Reconciler) Changed(name string, change func()) {
	affected := r.beside(name)
	change()
	affected = append(append(affected, r.beside(name)...), name)
	for _, name := range append(affected, r.Index.Pools.BlocksOf(name)...) { // blocks inherit its values
		r.invalidate(name)
		r.Queue.Enqueue(name, 0)
	}
}

// beside returns the names of the pools that depend on a pool.
func (r *Reconciler) beside(name string) []string {
	names := r.Index.Pools.Relatives(name)
	for _, o := range r.Index.Pools.Overlaps(name) {
		names = append(names, o.Other)
	}
	return names
}

func (r *Reconciler) invalidate(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.compared, name)
}

// EventOfAddress creates an event on the pool of a lease, about its address. Events about the same objects would be
// counted as one, whatever their messages.
func (r *Reconciler) EventOfAddress(ctx context.Context, l lease.Lease, kind, reason, action, note string) {
	var pool v1.BCSNetPool
	if err := r.Client.Get(ctx, types.NamespacedName{Name: l.Pool}, &pool); err != nil {
		return // a lease outlives its pool
	}
	address := &v1.BCSNetIP{ObjectMeta: metav1.ObjectMeta{Name: ipaddr.ObjectName(l.Addr)}}
	r.Events.Eventf(&pool, address, kind, reason, action, "%s", conditions.Clip(note, conditions.MaxNote))
}

// Reconcile reconciles one pool.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, leave, leads := r.Terms.Join(ctx)
	if !leads {
		return reconcile.Result{}, nil
	}
	defer leave()
	if r.Ready() != nil {
		// The feeds lag, which is not an error of this pool.
		return reconcile.Result{RequeueAfter: leadership.NotReadyDelay}, nil
	}
	var pool v1.BCSNetPool
	switch err := r.Client.Get(ctx, req.NamespacedName, &pool); {
	case apierrors.IsNotFound(err):
		r.forget(req.Name)
		return reconcile.Result{}, r.tidy(ctx, req.Name)
	case err != nil:
		return reconcile.Result{}, err
	}
	known, ok := r.Index.Pools.Get(pool.Name)
	if !ok || !store.Known(known, &pool) {
		return reconcile.Result{RequeueAfter: behindDelay}, nil
	}
	if !pool.DeletionTimestamp.IsZero() {
		return r.terminate(ctx, &pool, known)
	}
	if !controllerutil.ContainsFinalizer(&pool, v1.PoolFinalizer) {
		if behind, err := r.addFinalizer(ctx, &pool, known); behind || err != nil {
			return reconcile.Result{RequeueAfter: conditions.WriteDelay}, err
		}
	}
	left, workErr := r.arrange(ctx, &pool, known)
	if known.Block && workErr == nil && left == 0 { // its parent has its numbers
		return reconcile.Result{RequeueAfter: r.nextLook(pool.Name)}, nil
	}
	carving, err := r.carve(ctx, &pool, known)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("pool %s: %w", pool.Name, err)
	}
	wait, err := r.publish(ctx, &pool, known,
		view{left: left, failure: workErr, rebuilding: r.Index.Pools.Rebuilding(pool.Name), carving: carving})
	if err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case workErr != nil:
		return reconcile.Result{}, fmt.Errorf("pool %s: %w", pool.Name, workErr)
	case left > 0:
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	default:
		return reconcile.Result{RequeueAfter: leadership.Sooner(wait, leadership.Sooner(carving.again,
			r.nextLook(pool.Name)))}, nil
	}
}

// nextLook returns the time after which an up-to-date pool is reconciled again: soon after the cooldown of its next
// address ends, because that causes no event.
func (r *Reconciler) nextLook(name string) time.Duration {
	now := r.Leases.Now()
	counts := r.Index.Pools.Counts(name, now)
	if counts.Cooling == 0 {
		return fullPass
	}
	return min(fullPass, max(counts.NextFree.Sub(now), conditions.WriteDelay))
}

// addFinalizer writes only the finalizer and, for a block that somebody created by hand, the field that makes its
// objects be created on demand, as for all blocks. By this field the API server recognizes a block, and keeps its
// namespace immutable. behind reports whether the cache has an older pool than the API server, or a deleted one.
func (r *Reconciler) addFinalizer(ctx context.Context, pool *v1.BCSNetPool, known ipam.Pool) (behind bool, err error) {
	changed := pool.DeepCopy()
	controllerutil.AddFinalizer(changed, v1.PoolFinalizer)
	if known.Block {
		changed.Spec.Materialize = v1.MaterializeOnDemand
	}
	err = r.Client.Patch(ctx, changed, client.MergeFromWithOptions(pool, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return true, nil
	}
	*pool = *changed
	return false, err
}
