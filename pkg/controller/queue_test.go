package controller

import (
	"context"
	"log/slog"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestQueue: only what has a name is entered, by a leader, when the manager has started.
func TestQueue(t *testing.T) {
	term, end := context.WithCancel(t.Context())
	defer end()
	leads := &leadership{log: slog.New(slog.DiscardHandler)}
	q := &queue{leads: leads}
	pool := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	leads.set(term)
	q.add(pool("before-the-start"), 0)
	q.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.queue.ShutDown()
	q.add(pool(""), 0)
	q.add(pool("led"), 0)
	q.add(pool("led"), 0)
	end()
	q.add(pool("not-led"), 0)
	if n := q.queue.Len(); n != 1 {
		t.Fatalf("%d are entered, want 1", n)
	}
	if got, _ := q.queue.Get(); got.NamespacedName != pool("led") {
		t.Errorf("entered: %v", got)
	}
}
