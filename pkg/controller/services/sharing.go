package services

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// keyOf returns the key by which a Service shares an address; empty for none. The key is one of its namespace.
func keyOf(s *corev1.Service) string {
	key, _, _ := workload.FirstOf(s.Annotations, workload.SharingAnnotation, "metallb.io/allow-shared-ip",
		"metallb.universe.tf/allow-shared-ip")
	return key
}

// listOthers returns the Services of a namespace beside one of them that share an address by a key, or that we gave
// addresses, the oldest first.
func listOthers(
	ctx context.Context, from client.Reader, name types.NamespacedName,
) (all []*corev1.Service, err error) {
	var list corev1.ServiceList
	if err := from.List(ctx, &list, client.InNamespace(name.Namespace)); err != nil {
		return nil, err
	}
	all = []*corev1.Service{}
	for i := range list.Items {
		if s := &list.Items[i]; s.Name != name.Name && (keyOf(s) != "" || workload.IsMarked(s)) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, workload.ByAge)
	return all, nil
}

// shares returns the Services, as the API server has them, that may share an address with one of them; key is that of
// the latter. One Service is looked at at a time then, until done is called: who joins an address, and who gives it up,
// know of each other. A Service without a key shares nothing, unless others show its address: nothing is locked then,
// and others is nil.
func (r *Reconciler) shares(
	ctx context.Context, name types.NamespacedName, key string,
) (others []*corev1.Service, done func(), err error) {
	if key == "" {
		known, err := listOthers(ctx, r.Cache, name)
		if err != nil || !slices.ContainsFunc(r.holders.Held(name), func(l lease.Lease) bool {
			return len(usersOf(l.Addr, known)) > 0
		}) {
			return nil, func() {}, err
		}
	}
	r.sharing.Lock()
	if others, err = listOthers(ctx, r.Live, name); err != nil {
		r.sharing.Unlock()
		return nil, func() {}, err
	}
	return others, r.sharing.Unlock, nil
}

// shows reports whether a Service says in its status that it has an address.
func shows(s *corev1.Service, a netip.Addr) bool {
	return slices.Contains(workload.ShownBy(s), a)
}

// usersOf returns the Services that have an address beside its holder: we wrote it into their status. They may be about
// to leave it; they do so in their own turn.
func usersOf(a netip.Addr, others []*corev1.Service) (users []*corev1.Service) {
	for _, s := range others {
		if workload.IsMarked(s) && shows(s, a) {
			users = append(users, s)
		}
	}
	return users
}

// apart returns why two Services cannot have one address; nil if they can. The rules are MetalLB's.
func apart(s, o *corev1.Service) *ipam.Refusal {
	refuse := func(format string, args ...any) *ipam.Refusal {
		return ipam.Refuse(reasonConflict, "Service %s has the address, and %s", o.Name, fmt.Sprintf(format, args...)).
			WithHint("another key gives the Service its own address: annotation %s", workload.SharingAnnotation)
	}
	if keyOf(s) != keyOf(o) {
		return refuse("another sharing key")
	}
	for _, p := range s.Spec.Ports {
		for _, q := range o.Spec.Ports {
			protocol := cmp.Or(q.Protocol, corev1.ProtocolTCP)
			if p.Port == q.Port && cmp.Or(p.Protocol, corev1.ProtocolTCP) == protocol {
				return refuse("port %d/%s, too", q.Port, protocol)
			}
		}
	}
	local := func(s *corev1.Service) bool {
		return s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	}
	if (local(s) || local(o)) && !maps.Equal(s.Spec.Selector, o.Spec.Selector) {
		return refuse("another selector, while one of the two has externalTrafficPolicy Local")
	}
	return nil
}

// join returns the address of a family that a Service gets from another one of its key: the one that it shares already,
// if any, else one that it asks for. A refusal says that there are such addresses, and none of them can be shared.
func (r *Reconciler) join(o *look, f ipaddr.Family) (has lease.Lease, refusal *ipam.Refusal) {
	if o.key == "" {
		return has, nil
	}
	var offered []lease.Lease
	for _, a := range workload.ShownBy(o.Service) { // one whose holder is about to pass it on
		l, _ := r.holders.Index.Leases.Get(a)
		owner, ok := workload.ParseOwner(l.Owner)
		if ok && owner.Kind == workload.OwnerService && owner.Namespace == o.Namespace && owner.Name != o.Name &&
			ipaddr.FamilyOf(a) == f && (!o.moving || r.suits(o.wish, l)) &&
			!slices.ContainsFunc(o.others, func(s *corev1.Service) bool {
				return s.Name == owner.Name && r.isOurs(s)
			}) {
			return l, nil
		}
	}
	for _, s := range o.others {
		if keyOf(s) != o.key || !r.isOurs(s) {
			continue
		}
		for _, l := range r.holders.Held(client.ObjectKeyFromObject(s)) {
			if ipaddr.FamilyOf(l.Addr) == f && (r.suits(o.wish, l) || shows(o.Service, l.Addr)) {
				offered = append(offered, l)
			}
		}
	}
	slices.SortStableFunc(offered, func(a, b lease.Lease) int {
		return ipam.FalseFirst(!shows(o.Service, a.Addr), !shows(o.Service, b.Addr))
	})
	for _, l := range offered {
		why := r.barred(o.Service, l, o.others)
		if why == nil && (!o.moving || r.suits(o.wish, l)) {
			return l, nil
		}
		refusal = cmp.Or(refusal, why)
	}
	return has, refusal
}

// barred returns why a Service cannot have an address with those that have it; nil if it can. Of two that do not fit
// together any more the holder stays, and then the older one.
func (r *Reconciler) barred(s *corev1.Service, l lease.Lease, others []*corev1.Service) *ipam.Refusal {
	for _, o := range others {
		holds := r.holders.Owner(client.ObjectKeyFromObject(o)) == l.Owner
		first := workload.IsMarked(o) && shows(o, l.Addr) && (!shows(s, l.Addr) || workload.ByAge(o, s) < 0)
		if holds || first {
			if why := apart(s, o); why != nil {
				return why
			}
		}
	}
	return nil
}
