package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// workers is how many objects of a kind are reconciled at once.
	workers = 4
	// minBackoff and maxBackoff are how long an object rests after a failure. An API server that was away for
	// an hour finds its pools and claims looked at within seconds.
	minBackoff, maxBackoff = 50 * time.Millisecond, 5 * time.Second
)

// queue has objects reconciled, besides after each change of theirs, whenever somebody says so. It runs on every replica,
// since it cannot be started twice; on those that do not lead nothing is entered but the objects' own changes, and
// reconciling these does nothing.
type queue struct {
	leads *leadership

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request] // nil before the manager starts
}

// serve registers a reconciler of the objects of a kind.
func (q *queue) serve(mgr ctrl.Manager, name string, kind client.Object, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(kind).
		WatchesRawSource(source.Func(func(_ context.Context, started workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.queue = started
			return nil
		})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff),
		}).
		Complete(r)
}

// add has an object reconciled after a delay; nothing happens for an empty name, and on a replica that does not lead.
func (q *queue) add(object types.NamespacedName, after time.Duration) {
	if object.Name == "" || !q.leads.Leading() {
		return
	}
	q.mu.Lock()
	started := q.queue
	q.mu.Unlock()
	if started != nil {
		started.AddAfter(reconcile.Request{NamespacedName: object}, after)
	}
}
