package leadership

import (
	"context"
	"log/slog"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
)

// TestQueue: only what has a name is entered, by a leader, when the manager has started.
func TestQueue(t *testing.T) {
	term, end := context.WithCancel(t.Context())
	defer end()
	leads := NewTerms(slog.New(slog.DiscardHandler))
	q := NewQueue(leads)
	pool := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	leads.set(term)
	q.Add(pool("before-the-start"), 0)
	q.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.queue.ShutDown()
	q.Add(pool(""), 0)
	q.Add(pool("led"), 0)
	q.Add(pool("led"), 0)
	end()
	q.Add(pool("not-led"), 0)
	if n := q.queue.Len(); n != 1 {
		t.Fatalf("%d are entered, want 1", n)
	}
	if got, _ := q.queue.Get(); got.NamespacedName != pool("led") {
		t.Errorf("entered: %v", got)
	}
}

// entered notes after how long each object is entered.
type entered struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	after []time.Duration
}

func (e *entered) AddAfter(_ reconcile.Request, after time.Duration) {
	e.after = append(e.after, after)
}

// TestOnChange: what somebody wants of an object has it looked at once; its status, which is our own word, later.
func TestOnChange(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		change func(*v1.BCSNetPool)
		want   time.Duration
	}{
		"status":       {func(p *v1.BCSNetPool) { p.Status.Active++; p.ResourceVersion = "2" }, conditions.WriteDelay},
		"nothing":      {func(*v1.BCSNetPool) {}, conditions.WriteDelay},
		"spec":         {func(p *v1.BCSNetPool) { p.Generation++ }, 0},
		"finalizer":    {func(p *v1.BCSNetPool) { p.Finalizers = nil }, 0},
		"label":        {func(p *v1.BCSNetPool) { p.Labels = map[string]string{"a": "b"} }, 0},
		"annotation":   {func(p *v1.BCSNetPool) { p.Annotations = map[string]string{"a": "b"} }, 0},
		"deletion":     {func(p *v1.BCSNetPool) { p.DeletionTimestamp, p.Generation = &now, p.Generation+1 }, 0},
		"another pool": {func(p *v1.BCSNetPool) { p.UID = "other" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			old := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{
				Name: "p", UID: "u", Generation: 1, Finalizers: []string{v1.PoolFinalizer},
			}}
			changed := old.DeepCopy()
			test.change(changed)
			var q entered
			onChange().Update(t.Context(), event.UpdateEvent{ObjectOld: old, ObjectNew: changed}, &q)
			if len(q.after) != 1 || q.after[0] != test.want {
				t.Errorf("looked at after %v, want %v", q.after, test.want)
			}
		})
	}
}
