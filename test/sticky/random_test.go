package sticky_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// countEnv is the number of operations that the long form does at random.
const (
	countEnv     = "STICKY_OPERATIONS"
	defaultCount = 1000
)

// random does operations to apps of every kind and policy, each as the one before has left it, while replicas of the
// controller are killed.
func (f *fixture) random(t *testing.T) {
	left := &atomic.Int64{}
	left.Store(defaultCount)
	if text := os.Getenv(countEnv); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		left.Store(n)
	}
	tally := &tally{of: map[operation]int{}}
	var parts []part
	for _, k := range []kind{deployment, statefulSet, fleet, daemonSet, barePod} {
		for _, policy := range []string{plain, immutable, never, timed, shared} {
			if exists(k, policy, podDelete) {
				parts = append(parts, part{
					fmt.Sprintf("%s-%s", k, policy), func(t *testing.T) {
						t.Helper()
						f.wander(t, k, policy, left,
							tally)
					},
				})
			}
		}
	}
	f.killing(t, math.MaxInt32, 2*time.Minute, parts)
	t.Logf("%d operations: %v", tally.sum(), tally.of)
}

// tally counts what was done.
type tally struct {
	mu sync.Mutex
	of map[operation]int
}

func (c *tally) add(t *testing.T, op operation) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[op]++
	if n := c.sum(); n%500 == 0 {
		t.Logf("%d operations", n)
	}
}

func (c *tally) sum() (n int) {
	for _, v := range c.of {
		n += v
	}
	return n
}

// wander does operations to an app while there are some left.
func (f *fixture) wander(t *testing.T, k kind, policy string, left *atomic.Int64, count *tally) {
	t.Helper()
	s := f.newSite(t, fmt.Sprintf("random-%s-%s", k, policy), 8*replicas, "")
	s.nodes = s.namespace
	f.kubelet.addNodes(t, s.nodes, replicas)
	a := s.newApp(k, asks(policy, k, s.pool), replicas)
	a.hasty = true
	now := a.start(t)
	var done []operation
	defer func() {
		if t.Failed() {
			t.Logf("operations: %v", done)
		}
	}()
	all := []operation{
		podDelete, forceDelete, nodeLoss, rollInPlace, rollWithSurge, scaleToOne, scaleToZero, foreground, background,
		flap, flicker, storm,
	}
	for left.Add(-1) >= 0 {
		op := all[f.below(len(all))]
		for !a.takes(op) || op == nodeLoss && !f.chance(3) {
			op = all[f.below(len(all))]
		}
		done = append(done, op)
		now = a.do(t, op, now)
		if op == nodeLoss {
			f.kubelet.addNodes(t, s.nodes, 1)
			now = a.expect(t, "pods on the new node", a.replaced(now, nil, replicas))
		}
		count.add(t, op)
	}
}

// takes says whether an operation can be done to the app.
func (a *app) takes(op operation) bool {
	switch op {
	case flap:
		op = scaleToOne
	case flicker:
		op = background
	case storm:
		op = rollInPlace
	default:
	}
	return exists(a.kind, a.policy, op)
}

// flap scales the app down and up again at once.
func (a *app) flap(t *testing.T, before picture) picture {
	t.Helper()
	n := a.below(replicas)
	a.replicas = int32(n)
	a.apply(t)
	a.idle(t)
	a.replicas = replicas
	a.apply(t)
	w := a.scaledBack(before, n)
	w.same, w.more = nil, w.same
	return a.expect(t, "a flapping app to run", w)
}

// flicker deletes the app and makes it again at once.
func (a *app) flicker(t *testing.T, before picture) picture {
	t.Helper()
	a.delete(t, metav1.DeletePropagationBackground)
	a.apply(t)
	w := a.scaledBack(before, 0)
	w.same, w.more, w.gone = nil, w.same, before.uids
	return a.expect(t, "an app that was made again at once to run", w)
}

// storm deletes pods, with force and without, while the app is updated.
func (a *app) storm(t *testing.T, before picture) picture {
	t.Helper()
	a.rev++
	a.apply(t)
	for range 1 + a.below(4) {
		a.idle(t)
		names := slices.Sorted(maps.Keys(before.pods))
		if all, err := a.pods(t.Context()); err == nil && len(all) > 0 {
			names = append(names, all[a.below(len(all))].Name)
		}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: names[a.below(len(names))]}}
		var opts []client.DeleteOption
		if a.chance(2) {
			opts = append(opts, client.GracePeriodSeconds(0))
		}
		if err := client.IgnoreNotFound(a.admin.Delete(t.Context(), p, opts...)); err != nil {
			t.Fatal(err)
		}
	}
	return a.expect(t, "an update among deleted pods to end", a.replaced(before, before.uids, replicas))
}

// idle lets a moment pass.
func (a *app) idle(t *testing.T) {
	t.Helper()
	select {
	case <-t.Context().Done():
	case <-time.After(time.Duration(a.below(1500)) * time.Millisecond):
	}
}
