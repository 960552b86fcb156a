package http_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// reclaiming runs a controller that leads beside the shared one and takes blocks back after so long.
func reclaiming(t *testing.T, after time.Duration) caller {
	t.Helper()
	return startFor(t, account(t, shared.cluster), func(o *controller.Options) {
		o.LeaderElect, o.AbandonedFor = false, after
	}).caller()
}

// removeNamespace deletes the site's namespace at once: nothing in this control plane would empty it.
func (s *site) removeNamespace() {
	s.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	if err := errors.Join(
		shared.admin.DeleteAllOf(s.t.Context(), &corev1.Pod{}, client.InNamespace(s.Namespace), client.GracePeriodSeconds(0)),
		shared.admin.Delete(s.t.Context(), ns),
		shared.admin.Get(s.t.Context(), client.ObjectKeyFromObject(ns), ns),
	); err != nil {
		s.t.Fatal(err)
	}
	ns.Spec.Finalizers = nil
	if err := shared.admin.SubResource("finalize").Update(s.t.Context(), ns); client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
}

// live returns the site's blocks that are not being deleted.
func (s *site) live() (names []string) {
	s.t.Helper()
	var list v1.BCSNetPoolList
	if err := shared.admin.List(s.t.Context(), &list); err != nil {
		s.t.Fatal(err)
	}
	for _, p := range list.Items {
		if p.Spec.Parent == s.Namespace && p.DeletionTimestamp.IsZero() {
			names = append(names, p.Name)
		}
	}
	return names
}

// TestReclaimAbandoned: the blocks of a namespace that is gone are taken back, not before nothing is in them; a
// namespace that is made again has the block that it had.
func TestReclaimAbandoned(t *testing.T) {
	t.Parallel()
	call := reclaiming(t, 2*time.Second)
	s := newSite(t)
	s.call = call
	s.splitPool("/24", 27, allocatorOf(t))
	body, _ := s.given("a")
	before := slices.Sorted(maps.Keys(s.blocks()))
	s.removeNamespace()
	time.Sleep(4 * time.Second) //nolint:forbidigo // nothing may happen for so long
	if got := s.live(); !slices.Equal(got, before) {
		t.Fatalf("blocks with a lease: %v, had %v", got, before)
	}
	s.del(body).done(t)
	controlplane.EventuallyWithin(t, 2*time.Minute, func() error { // the deletion of a pool takes a request's time
		if got := s.blocks(); len(got) > 0 {
			return fmt.Errorf("blocks %v", got)
		}
		return nil
	})
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}})
	s.given("b")
	if after := slices.Sorted(maps.Keys(s.blocks())); !slices.Equal(after, before) {
		t.Errorf("made again, the namespace has %v, had %v", after, before)
	}
}

// TestReclaimFromTheLiving: without reclaimAfter nothing is taken from a namespace that lives; with it, not the last
// block. ADDs that come meanwhile, at two replicas, all have an address of their own.
func TestReclaimFromTheLiving(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	call := reclaiming(t, time.Hour)
	s := newSite(t)
	s.call = call
	parent := s.splitPool("/24", 30, allocatorOf(t))
	var bodies []object
	for i := range 12 {
		body, _ := s.given(fmt.Sprintf("a-%d", i))
		bodies = append(bodies, body)
	}
	for _, b := range bodies {
		s.del(b).done(t)
	}
	time.Sleep(3 * time.Second) //nolint:forbidigo // nothing may happen for so long
	if got := s.live(); len(got) < 3 {
		t.Fatalf("without reclaimAfter %v are left", got)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"reclaimAfter":"1s"}}`))
	if err := shared.admin.Patch(t.Context(), parent, patch); err != nil {
		t.Fatal(err)
	}
	// Pods come and go meanwhile, so that blocks are needed the moment that they are taken back.
	var mu sync.Mutex
	held := map[string]string{}
	var all sync.WaitGroup
	for i := range 8 {
		pod := fmt.Sprintf("c-%d", i)
		s.pod(pod)
		all.Go(func() {
			for range 6 {
				body := s.request(newID(), pod)
				a, err := []caller{call, allocatorOf(t)}[i%2].send(t.Context(), "POST", prefix, body)
				if err != nil || a.Code != 0 {
					t.Errorf("%s: %v %s", pod, err, a.Raw)
					return
				}
				addr := ips(result{a, err}.must(t).done(t))[0]
				mu.Lock()
				if other, twice := held[addr]; twice && other != pod {
					t.Errorf("%s is of %s and %s", addr, other, pod)
				}
				held[addr] = pod
				mu.Unlock()
				time.Sleep(300 * time.Millisecond) //nolint:forbidigo // the pod runs for so long
				mu.Lock()
				delete(held, addr)
				mu.Unlock()
				if a, err := call.send(t.Context(), "DELETE", prefix, body); err != nil || a.Code != 0 {
					t.Errorf("%s: %v %s", pod, err, a.Raw)
				}
				time.Sleep(time.Duration(i) * 100 * time.Millisecond) //nolint:forbidigo // pods come apart
			}
		})
	}
	all.Wait()
	controlplane.EventuallyWithin(t, 2*time.Minute, func() error {
		if got := s.live(); len(got) != 1 {
			return fmt.Errorf("blocks %v", got)
		}
		return nil
	})
	time.Sleep(3 * time.Second) //nolint:forbidigo // nothing may happen for so long
	if got := s.live(); len(got) != 1 {
		t.Errorf("the last block is gone: %v", got)
	}
	// The parent takes its blocks with it.
	if err := shared.admin.Delete(t.Context(), parent); err != nil {
		t.Fatal(err)
	}
	controlplane.EventuallyWithin(t, 2*time.Minute, func() error {
		if err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(parent), parent); err == nil {
			return fmt.Errorf("the parent is there, with blocks %v", s.blocks())
		}
		return nil
	})
}
