package allocator

import (
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// by is the request of a container of a new pod that a network configuration attaches, which began at a time.
func (r *replica) by(s site, name, network string, began time.Time) Request {
	r.t.Helper()
	p := newPod(r.t, name+"-"+s.pool.Name, s.host, r)
	q := s.of(p, p.Name+"-c")
	q.PodUID, q.CNINetwork, q.StartedAt = string(p.UID), network, began
	return q
}

// vanish deletes the pods of requests by force, and waits until the cache has none of them.
func (r *replica) vanish(all ...Request) {
	r.t.Helper()
	for _, q := range all {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: q.Namespace, Name: q.PodName}}
		if err := cluster.AdminFor(r.t).Delete(r.t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
			r.t.Fatal(err)
		}
		controlplane.Until(r.t, "the cache knows no pod "+q.PodName, func() bool {
			return apierrors.IsNotFound(r.cached.Get(r.t.Context(), client.ObjectKeyFromObject(p), &corev1.Pod{}))
		})
	}
}

// latest is a pod that the network has attached later than those that are aged: the list that names it is of the
// runtime that attaches by the network.
func (r *replica) latest(s site, network string) Request {
	r.t.Helper()
	q := r.by(s, "latest", network, time.Now().Add(-time.Minute))
	r.one(q)
	return q
}

// collected collects a network of a site's host, whose list has the containers of some requests.
func (r *replica) collected(s site, network string, began time.Time, listed ...Request) NetworkCollected {
	r.t.Helper()
	g := NetworkGC{Host: s.host, CNINetwork: network, StartedAt: began}
	for _, l := range listed {
		g.Attachments = append(g.Attachments, Attachment{l.ContainerID, l.IfName})
	}
	done, err := r.CollectNetwork(r.t.Context(), g)
	if err != nil {
		r.t.Fatal(err)
	}
	return done
}

// collect does it, and returns what was released.
func (r *replica) collect(s site, network string, began time.Time, listed ...Request) []netip.Addr {
	r.t.Helper()
	return leased(r.collected(s, network, began, listed...).Released)
}

func leased(ls []lease.Lease) (all []netip.Addr) {
	for _, l := range ls {
		all = append(all, l.Addr)
	}
	return all
}

// aged has leases be bound ten minutes ago, by the API server's time, and waits until the index shows it.
func (r *replica) aged(all ...netip.Addr) {
	r.t.Helper()
	for _, a := range all {
		r.rewrite(a, func(l *lease.Lease) { l.BoundVersion, l.Updated = l.Bound(), l.Updated.Add(-10*time.Minute) })
	}
}

// rewrite changes a stored lease, and waits until the index shows it.
func (r *replica) rewrite(a netip.Addr, change func(*lease.Lease)) {
	r.t.Helper()
	cfg, err := identity()
	if err != nil {
		r.t.Fatal(err)
	}
	direct, err := store.New(cfg, nil, store.NewClock(nil))
	if err != nil {
		r.t.Fatal(err)
	}
	l := r.lease(a)
	change(&l)
	if l, err = direct.Write(r.t.Context(), l); err != nil {
		r.t.Fatal(err)
	}
	controlplane.Until(r.t, "the index shows what "+a.String()+" is now", func() bool {
		seen, _ := r.index.Leases.Get(a)
		return seen.Version >= l.Version
	})
}

// isGone deletes the pod of a lease.
func (r *replica) isGone(q Request, _ netip.Addr) { r.vanish(q) }

// isEnded has the pod of a lease end.
func (r *replica) isEnded(q Request, _ netip.Addr) {
	r.t.Helper()
	p, admin := &corev1.Pod{}, cluster.AdminFor(r.t)
	if err := admin.Get(r.t.Context(), client.ObjectKey{Namespace: q.Namespace, Name: q.PodName}, p); err != nil {
		r.t.Fatal(err)
	}
	stopped := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()}}
	p.Status.Phase = corev1.PodSucceeded
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: stopped}}
	if err := admin.Status().Update(r.t.Context(), p); err != nil {
		r.t.Fatal(err)
	}
	controlplane.Until(r.t, "the cache knows the end", func() bool {
		var o corev1.Pod
		err := r.cached.Get(r.t.Context(), client.ObjectKeyFromObject(p), &o)
		return err == nil && o.Status.Phase == corev1.PodSucceeded
	})
}

// isReplaced makes another pod of the name.
func (r *replica) isReplaced(q Request, _ netip.Addr) {
	r.vanish(q)
	newPod(r.t, q.PodName, q.Host, r)
}

// isStatic has the lease be of a static pod, whose mirror is not there.
func (r *replica) isStatic(q Request, addr netip.Addr) {
	r.vanish(q)
	r.rewrite(addr, func(l *lease.Lease) { l.PodUID = strings.Repeat("f", 32) })
}

// isPatient has the pod be one that takes long to end.
func (r *replica) isPatient(q Request, addr netip.Addr) {
	r.vanish(q)
	r.rewrite(addr, func(l *lease.Lease) { l.Termination = time.Hour })
}

// seesAll waits until the replica's cache has the pods of requests.
func (r *replica) seesAll(all ...Request) {
	r.t.Helper()
	for _, q := range all {
		r.sees(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: q.Namespace, Name: q.PodName, UID: types.UID(q.PodUID)}})
	}
}
