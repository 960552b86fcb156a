package leadership

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
)

const (
	// NotReadyDelay is the time after which an object is reconciled again while lists are missing.
	NotReadyDelay = 100 * time.Millisecond
	// workers is the number of objects of a kind that are reconciled at the same time.
	workers = 4
	// minBackoff and maxBackoff bound the wait of an object after a failure. After an API server was away for an hour,
	// pools and claims are reconciled within seconds.
	minBackoff, maxBackoff = 50 * time.Millisecond, 5 * time.Second
)

// Queue makes objects be reconciled after each of their changes, and after calls of Add. It runs on every replica,
// because it cannot be started twice. Outside of a term it drops all objects. In a term it keeps objects until Open is
// called: while the lists are incomplete, thousands of objects would be reconciled again and again without result.
type Queue struct {
	leads *Terms

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request] // nil before the manager starts
	// open is the term in which Open was last called; nil before the first call.
	open context.Context
	// kept has the objects that came before Open, each with its delay. If a term ends before it is opened, they are
	// left to the next one.
	kept map[reconcile.Request]time.Duration
}

// NewQueue returns a queue that accepts no objects before it is started and opened.
func NewQueue(leads *Terms) *Queue {
	return &Queue{leads: leads, kept: map[reconcile.Request]time.Duration{}}
}

// Serve registers a reconciler of the objects of a kind; nil if their changes come only by Add.
func (q *Queue) Serve(mgr ctrl.Manager, name string, kind client.Object, r reconcile.Reconciler) error {
	b := ctrl.NewControllerManagedBy(mgr).Named(name)
	if kind != nil {
		b = b.Watches(kind, q.onChange())
	}
	return b.
		WatchesRawSource(source.Func(func(
			_ context.Context, started workqueue.TypedRateLimitingInterface[reconcile.Request],
		) error {
			q.Start(started)
			return nil
		})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff,
				maxBackoff),
		}).
		Complete(r)
}

// Start sets the workqueue into which objects are entered from now on.
func (q *Queue) Start(started workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = started
	q.enterKept()
}

// Open lets objects be entered until a term ends, and enters the kept ones. Its caller must enter all objects
// afterwards, because a replica that does not lead keeps none.
func (q *Queue) Open(term context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = term
	q.enterKept()
}

// isOpen reports whether objects are entered at once. The caller must hold the lock.
func (q *Queue) isOpen() bool { return q.queue != nil && q.open != nil && q.open.Err() == nil }

// enterKept enters the kept objects if that is allowed now. The caller must hold the lock.
func (q *Queue) enterKept() {
	if !q.isOpen() {
		return
	}
	for r, after := range q.kept {
		q.queue.AddAfter(r, after)
	}
	clear(q.kept)
}

// onChange returns a handler that queues an object at once after it was created, changed or deleted, and after
// conditions.WriteDelay if only its status changed. A change of the status is nearly always the reconciler's own write.
// The delayed reconciliation repeats comparisons that used an older status, and corrects changes of the status by
// others.
func (q *Queue) onChange() ctrlhandler.EventHandler {
	type entered = workqueue.TypedRateLimitingInterface[reconcile.Request] // the same queue that Start was given
	return ctrlhandler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ entered) {
			q.Add(client.ObjectKeyFromObject(e.Object), 0)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ entered) {
			after := time.Duration(0)
			if onlyStatus(e.ObjectOld, e.ObjectNew) {
				after = conditions.WriteDelay
			}
			q.Add(client.ObjectKeyFromObject(e.ObjectNew), after)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ entered) {
			q.Add(client.ObjectKeyFromObject(e.Object), 0)
		},
	}
}

// onlyStatus reports whether two versions of an object differ only in their status. Each change of a spec, and a
// deletion, changes the generation.
func onlyStatus(old, o client.Object) bool {
	return old.GetUID() == o.GetUID() && old.GetGeneration() == o.GetGeneration() &&
		slices.Equal(old.GetFinalizers(), o.GetFinalizers()) &&
		maps.Equal(old.GetLabels(), o.GetLabels()) && maps.Equal(old.GetAnnotations(), o.GetAnnotations())
}

// Add queues an object to be reconciled after a delay. It does nothing for an empty name, and on a replica that does
// not lead.
func (q *Queue) Add(object types.NamespacedName, after time.Duration) {
	if object.Name == "" || !q.leads.Leading() {
		return
	}
	r := reconcile.Request{NamespacedName: object}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isOpen() {
		q.queue.AddAfter(r, after)
		return
	}
	if sooner, ok := q.kept[r]; !ok || after < sooner {
		q.kept[r] = after
	}
}

// Sooner returns the shorter of two delays; 0 stands for none.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
