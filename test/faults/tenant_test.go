package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/judge"
)

// tenants come and go: a namespace is made, its pods get addresses, and then all of it is deleted and no DEL arrives.
// What other pods have left behind comes back all the same.
func (r *round) tenants(rng *rand.Rand) {
	// the first is there before the store is put back
	for n := 0; (n == 0 || r.between(rng, r.length/8)) && r.leaky(); n++ {
		if !r.steady.TryRLock() {
			continue // the store is being put back
		}
		name := fmt.Sprintf("tenant-%d", n)
		r.journaled("namespace deleted", name, func() { r.tenant(name, rng) })
		r.steady.RUnlock()
		if !braked(tenantPods(r.site.slots)) {
			return // a second one, with what others have left, might be more than the brake lets pass
		}
		if pause(r.load, time.Minute) {
			r.confirm(r.load)
		}
	}
}

func (r *round) tenant(name string, rng *rand.Rand) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	until(r.ctx, func(ctx context.Context) error { return r.site.create(ctx, ns.DeepCopy()) })
	r.spared.RLock()
	defer r.spared.RUnlock()
	var all []*sandbox
	for i := range tenantPods(r.site.slots) {
		pod, h := fmt.Sprintf("pod-%d", i), r.site.place(i%hosts)
		uid, _, ok := r.makePod(name, pod, h)
		if !ok {
			return
		}
		b := r.container(rng.Uint64(), rng.Uint64(), name, pod, uid, h)
		if b.client = 200_000 + i; i%2 == 0 {
			b.network = tenantPool // and the namespace gets a block
		}
		from := r.history.Now()
		a, ok := r.callers.Ask(r.ctx, rng, http.MethodPost, "", func() any { return r.add(b) },
			func() bool { return !r.loading() })
		if !ok || a.Code != 0 {
			r.DEL(b, rng, from)
			continue
		}
		b.addr = addrOf(a)
		r.Count("operation ADD")
		r.note(b, b.addr, true, from, r.history.Now())
		if live, err := r.site.read(r.ctx, b.addr); err == nil {
			r.ledger.Hold(b.addr, b.who(), b.id, live.Version)
		}
		all = append(all, b)
	}
	r.while(rng, 0, 3*time.Second)
	for _, b := range all {
		r.last(b)
		r.note(b, b.addr, false, r.history.Now(), judge.Never)
		r.Count("pod deleted without DEL")
	}
	until(r.ctx, func(ctx context.Context) error {
		return r.site.admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(name), client.GracePeriodSeconds(0))
	})
	until(r.ctx, func(ctx context.Context) error { return r.site.deleteNamespace(ctx, ns) })
}

// braked reports whether so many pods of a namespace are more than the brake of the collection lets pass.
func braked(pods int) bool { return pods > 10 }

// tenantPods are those of a namespace: where there are many of all, more than the brake of the collection lets pass.
func tenantPods(slots int) int { return max(3, slots/2) }

// deleteNamespace deletes a namespace as kube-controller-manager would, which is not there.
func (f *fixture) deleteNamespace(ctx context.Context, ns *corev1.Namespace) error {
	if err := f.admin.Delete(ctx, ns); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return err
	}
	var now corev1.Namespace
	if err := f.admin.Get(ctx, client.ObjectKeyFromObject(ns), &now); err != nil {
		return client.IgnoreNotFound(err)
	}
	now.Spec.Finalizers = nil
	return f.admin.SubResource("finalize").Update(ctx, &now)
}

// orphans reports whether a slot has a pod of which the API server knows nothing.
func (r *round) orphans() bool {
	return slices.ContainsFunc(r.slots, func(s *slot) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.orphan.IsZero()
	})
}

// create makes an object that may have been made by an attempt whose answer was lost.
func (f *fixture) create(ctx context.Context, o client.Object) error {
	if err := f.admin.Create(ctx, o); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// confirm has an operator say that what waits for the brake of the collection has gone, as what a namespace had that is
// no more. No host is cut off meanwhile: whoever confirms knows that the hosts are there. Nor is the store put back,
// and no containers run of which it knows nothing: doctor would take what they have, as their kubelets take longer to
// end them here than doctor waits, and what it saw before is nothing to go by after.
func (r *round) confirm(ctx context.Context) {
	r.island.none.Lock()
	defer r.island.none.Unlock()
	r.steady.RLock()
	defer r.steady.RUnlock()
	for r.orphans() && pause(ctx, 100*time.Millisecond) {
	}
	r.journaled("leaks confirmed", "", func() {
		// what fails is confirmed once more in the end
		_, _ = r.site.bcsnetctl(ctx, 2*time.Minute, "doctor", "--fix", "--only", "leaks", "--yes")
	})
}
