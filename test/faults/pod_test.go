package faults_test

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/judge"
	"github.com/bcsnet/bcsnet/test/plugin"
)

// until repeats something that the API server may not be there for, at most until the context ends.
func until(ctx context.Context, do func(context.Context) error) bool {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, plugin.Attempt)
		err := do(limited)
		cancel()
		if err == nil {
			return true
		}
		pause(ctx, 50*time.Millisecond)
	}
	return false
}

// createPod makes the next pod of the slot.
func (s *slot) createPod() (ok bool) {
	s.leaving = new(atomic.Int32)
	s.uid, s.created, ok = s.makePod(namespace, s.name, s.host)
	return ok
}

// makePod makes a pod on a host, also when the load ends meanwhile: the API server may have made it already.
func (r *round) makePod(namespace, name string, host int) (uid string, created metav1.Time, ok bool) {
	return r.makePodOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, host)
}

// unbound is the host of a pod that is bound to no node.
const unbound = -1

// makePodOf makes a pod on a host from its metadata.
func (r *round) makePodOf(of *corev1.Pod, host int) (uid string, created metav1.Time, ok bool) {
	ok = until(r.ctx, func(ctx context.Context) error {
		p := of.DeepCopy()
		p.Spec.Containers = []corev1.Container{{Name: "c", Image: "c"}}
		if host != unbound {
			p.Spec.NodeName = node(host)
		}
		err := r.site.admin.Create(ctx, p)
		if apierrors.IsAlreadyExists(err) { // made by the attempt before, whose answer was lost
			err = r.site.admin.Get(ctx, client.ObjectKeyFromObject(p), p)
		}
		if err == nil {
			uid, created = string(p.UID), p.CreationTimestamp
			r.Count("pod created")
		}
		return err
	})
	return uid, created, ok
}

// report is what a kubelet writes into the status of a pod that runs; like there it may come late, or never.
func (s *slot) report(b *sandbox) {
	if s.rng.IntN(3) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, plugin.Attempt)
	defer cancel()
	if s.tell(ctx, b) == nil {
		s.Count("pod reported")
	}
}

func (s *slot) tell(ctx context.Context, b *sandbox) error {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.name, UID: types.UID(b.uid)}}
	p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &s.created // a kubelet never changes the time
	p.Status.HostIP, p.Status.HostIPs = host(b.host), []corev1.HostIP{{IP: host(b.host)}}
	p.Status.PodIP, p.Status.PodIPs = b.addr.String(), []corev1.PodIP{{IP: b.addr.String()}}
	return s.site.admin.Status().Update(ctx, p)
}

// deletePod takes the pod of the slot away, as at the end of its grace period.
func (s *slot) deletePod() {
	s.removePod(namespace, s.name, s.uid)
	s.uid, s.sandbox, s.taken = "", nil, false
}

// removePod has the API server forget a pod at once.
func (r *round) removePod(namespace, name, uid string) {
	until(r.ctx, func(ctx context.Context) error {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		err := r.site.admin.Delete(ctx, p, client.GracePeriodSeconds(0), client.Preconditions{UID: new(types.UID(uid))})
		if apierrors.IsConflict(err) {
			return nil
		}
		return client.IgnoreNotFound(err)
	})
}

// endPod ends the pod of a slot: with a DEL before or after the object goes, or without any. A pod whose
// address an operator took has nothing that could be looked at.
func (s *slot) endPod(inOrder bool) {
	b := s.sandbox
	switch {
	case b == nil:
	case s.taken:
		b.over.Store(true)
	default:
		s.last(b)
	}
	from := s.history.Now()
	how := s.rng.IntN(100)
	switch {
	case b == nil:
		s.deletePod()
	case inOrder || how < 55:
		s.DEL(b, s.rng, from)
		s.deletePod()
		if how < 5 && b.told { // an ADD that was on its way all the time
			s.duplicate(b, time.Duration(s.rng.IntN(1000))*time.Millisecond, nil)
		}
	case how >= 95 && s.forgetful():
		s.deletePod()
		s.Count("pod deleted without DEL")
		s.note(b, b.addr, false, from, judge.Never)
	default:
		s.deletePod()
		s.lateDEL(b, time.Duration(s.rng.IntN(3000))*time.Millisecond, from)
	}
}
