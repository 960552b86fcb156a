package leadership

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
)

// queueOfTerm returns a queue of a replica that leads until end is called.
func queueOfTerm(t *testing.T) (q *Queue, term context.Context, end context.CancelFunc) {
	t.Helper()
	term, end = context.WithCancel(t.Context())
	t.Cleanup(end)
	leads := NewTerms(slog.New(slog.DiscardHandler))
	leads.set(term)
	return NewQueue(leads), term, end
}

func pool(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

// TestQueue: only what has a name is entered, by a leader.
func TestQueue(t *testing.T) {
	q, term, end := queueOfTerm(t)
	q.Start(workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()))
	defer q.queue.ShutDown()
	q.Open(term)
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

// TestQueueKeepsUntilOpen: what comes before a term is opened, or before the manager has started, is entered once, and
// then, after the shortest of its delays. Nothing is reconciled while the lists come.
func TestQueueKeepsUntilOpen(t *testing.T) {
	for name, steps := range map[string][]func(q *Queue, term context.Context, e *entered){
		"opened last": {
			func(q *Queue, _ context.Context, e *entered) { q.Start(e) },
			func(q *Queue, term context.Context, _ *entered) { q.Open(term) },
		},
		"started last": {
			func(q *Queue, term context.Context, _ *entered) { q.Open(term) },
			func(q *Queue, _ context.Context, e *entered) { q.Start(e) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			q, term, end := queueOfTerm(t)
			var e entered
			add := func() {
				for i := range 100 {
					q.Add(pool(fmt.Sprint("pool-", i)), time.Second)
				}
				q.Add(pool("pool-7"), time.Minute)
				q.Add(pool("pool-7"), time.Millisecond)
			}
			add()
			steps[0](q, term, &e)
			add()
			if len(e.after) > 0 {
				t.Fatalf("%d are entered before the term is open", len(e.after))
			}
			steps[1](q, term, &e)
			want := slices.Repeat([]time.Duration{time.Second}, 99)
			slices.Sort(e.after)
			if diff := cmp.Diff(append([]time.Duration{time.Millisecond}, want...), e.after); diff != "" {
				t.Errorf("entered after (-want +got):\n%s", diff)
			}
			q.Add(pool("open"), 0)
			if n := len(e.after); n != 101 {
				t.Errorf("%d are entered, want 101", n)
			}
			end()
			next, endNext := context.WithCancel(t.Context())
			defer endNext()
			q.leads.set(next)
			q.Add(pool("next-term"), 0)
			if n := len(e.after); n != 101 {
				t.Errorf("%d are entered, want 101: the next term is not open", n)
			}
			q.Open(next)
			if n := len(e.after); n != 102 {
				t.Errorf("%d are entered, want 102", n)
			}
		})
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
			q, term, _ := queueOfTerm(t)
			var e entered
			q.Start(&e)
			q.Open(term)
			q.onChange().Update(t.Context(), event.UpdateEvent{ObjectOld: old, ObjectNew: changed}, &e)
			if len(e.after) != 1 || e.after[0] != test.want {
				t.Errorf("looked at after %v, want %v", e.after, test.want)
			}
		})
	}
}
