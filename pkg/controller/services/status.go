package services

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// write changes a Service by its subresource status, which takes finalizers and annotations, too: so the controller
// needs no right to change what a Service is. It fails if the Service has changed meanwhile.
func (r *Reconciler) write(ctx context.Context, s *corev1.Service, change func(*corev1.Service)) error {
	before := s.DeepCopy()
	change(s)
	return r.Client.Status().Patch(ctx, s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func (r *Reconciler) set(s *corev1.Service, status bool, reason, message string) {
	c := conditions.New(workload.ServiceCondition, status, reason, "%s", message)
	c.ObservedGeneration, c.LastTransitionTime = s.Generation, metav1.NewTime(r.holders.Leases.Now())
	meta.SetStatusCondition(&s.Status.Conditions, c)
}

// mark adds the finalizer and the condition to a Service before it is given an address. again is the time after which
// to look at the Service again if that was not possible.
func (r *Reconciler) mark(ctx context.Context, s *corev1.Service) (again time.Duration) {
	if controllerutil.ContainsFinalizer(s, Finalizer) && workload.IsMarked(s) {
		return 0
	}
	err := r.write(ctx, s, func(s *corev1.Service) {
		controllerutil.AddFinalizer(s, Finalizer)
		if !workload.IsMarked(s) {
			r.set(s, false, reasonPending, "it is being given its addresses")
		}
	})
	again = r.published.Wrote(client.ObjectKeyFromObject(s).String(), err)
	if err != nil && again == 0 { // it was deleted
		again = notSynced
	}
	return again
}

// hide takes the addresses that we gave a Service out of its status and kube-vip's annotation, before they are given
// back. What others wrote stays.
func (r *Reconciler) hide(ctx context.Context, s *corev1.Service) error {
	ours := func(i corev1.LoadBalancerIngress) bool { return !r.isOthers(s.Namespace, i) }
	vip, _, _ := strings.Cut(s.Annotations[kubeVIP], ",")
	announced := ours(corev1.LoadBalancerIngress{IP: vip})
	if !announced && !slices.ContainsFunc(s.Status.LoadBalancer.Ingress, ours) {
		return nil
	}
	return r.write(ctx, s, func(s *corev1.Service) {
		s.Status.LoadBalancer.Ingress = slices.DeleteFunc(s.Status.LoadBalancer.Ingress, ours)
		if announced {
			delete(s.Annotations, kubeVIP)
		}
	})
}

// unmark takes off a Service what mark and publish added.
func (r *Reconciler) unmark(ctx context.Context, s *corev1.Service) error {
	return r.write(ctx, s, func(s *corev1.Service) {
		controllerutil.RemoveFinalizer(s, Finalizer)
		meta.RemoveStatusCondition(&s.Status.Conditions, workload.ServiceCondition)
	})
}

// announce makes kube-vip's annotation say which addresses to announce, if it should say so, and reports whether that
// changes it. If not, it is removed when the Service gets other addresses than those that it says.
func announce(s *corev1.Service, addrs []netip.Addr, should bool) (changed bool) {
	before, some := s.Annotations[kubeVIP]
	switch {
	case should && len(addrs) > 0:
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, kubeVIP, inWords(addrs))
	case some && before == inWords(workload.ShownBy(s)) && !slices.Equal(addrs, workload.ShownBy(s)):
		delete(s.Annotations, kubeVIP)
	}
	return before != s.Annotations[kubeVIP]
}

// varies reports whether the message of a refusal has counts or times, which change although nothing else does.
func varies(reason string) bool {
	return slices.Contains([]ipam.Reason{
		ipam.ReasonPoolExhausted, ipam.ReasonNoFreeBlock, ipam.ReasonQuotaExceeded, ipam.ReasonAddressCooling,
		ipam.ReasonPoolRebuilding,
	}, ipam.Reason(reason))
}

// publish writes the addresses of a Service, and whether it has what it asks for, if its status is not up to date. What
// others wrote of an address, such as its ipMode, stays.
func (r *Reconciler) publish(
	ctx context.Context, s *corev1.Service, addrs []netip.Addr, ok bool, reason, message string,
) (again time.Duration, err error) {
	var ingress []corev1.LoadBalancerIngress
	for _, a := range addrs {
		next := corev1.LoadBalancerIngress{IP: a.String()}
		if i := slices.IndexFunc(s.Status.LoadBalancer.Ingress,
			func(i corev1.LoadBalancerIngress) bool { return i.IP == next.IP }); i >= 0 {
			next = s.Status.LoadBalancer.Ingress[i]
		}
		ingress = append(ingress, next)
	}
	c := meta.FindStatusCondition(s.Status.Conditions, workload.ServiceCondition)
	told := c != nil && (c.Status == metav1.ConditionTrue) == ok && c.Reason == reason &&
		(ok || varies(reason) || c.Message == conditions.Clip(message, conditions.MaxMessage))
	if told && !announce(s.DeepCopy(), addrs, r.KubeVIP) && slices.Equal(workload.ShownBy(s), addrs) &&
		len(s.Status.LoadBalancer.Ingress) == len(addrs) {
		return 0, nil
	}
	err = r.write(ctx, s, func(s *corev1.Service) {
		announce(s, addrs, r.KubeVIP)
		s.Status.LoadBalancer.Ingress = ingress
		r.set(s, ok, reason, message)
	})
	if err == nil && !told && reason != reasonPending {
		kind := corev1.EventTypeNormal
		if !ok {
			kind = corev1.EventTypeWarning
		}
		r.Events.Eventf(s, nil, kind, reason, "GiveAddresses", "%s", conditions.Clip(message, conditions.MaxNote))
	}
	return r.published.Wrote(client.ObjectKeyFromObject(s).String(), err), nil
}
