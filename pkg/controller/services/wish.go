package services

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const (
	// Finalizer keeps a Service until its addresses are given back. It is the one that Kubernetes has for this.
	Finalizer = "service.kubernetes.io/load-balancer-cleanup"
	// kubeVIP is the annotation from which kube-vip takes the addresses that it announces.
	kubeVIP = "kube-vip.io/loadbalancerIPs"
)

// Reasons of Services that the allocator does not know.
const (
	reasonGiven    = "Given"
	reasonPending  = "Pending"
	reasonNoPool   = ipam.Reason("PoolNotNamed")
	reasonConflict = ipam.Reason("SharingConflict")
)

// isOurs reports whether a Service is to have addresses of ours. One without a class that has got some keeps them if
// we are the default no more.
func (r *Reconciler) isOurs(s *corev1.Service) bool {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer || s.DeletionTimestamp != nil {
		return false
	}
	if c := s.Spec.LoadBalancerClass; c != nil {
		return *c == workload.ServiceClass
	}
	return (r.DefaultClass || workload.IsMarked(s)) && !slices.ContainsFunc(s.Status.LoadBalancer.Ingress,
		func(i corev1.LoadBalancerIngress) bool { return r.isOthers(s.Namespace, i) })
}

// isOthers reports whether another controller has written an entry into the status of a Service of a namespace: a host
// name, or an address that is in none of our pools and that no Service of the namespace holds.
func (r *Reconciler) isOthers(namespace string, i corev1.LoadBalancerIngress) bool {
	a, err := netip.ParseAddr(i.IP)
	if err != nil {
		return true
	}
	_, ours := r.holders.Index.Pools.OwnerOf(a)
	l, _ := r.holders.Index.Leases.Get(a)
	o, ok := workload.ParseOwner(l.Owner)
	return !ours && (!ok || o.Kind != workload.OwnerService || o.Namespace != namespace)
}

// wish has the addresses that a Service asks for.
type wish struct {
	// families are in the order of the Service. required says that it has an address of each, or none.
	families []ipaddr.Family
	required bool
	// addrs are addresses asked for by name, of some families.
	addrs map[ipaddr.Family]netip.Addr
	// pools are those named; none for that of the addresses. own says that the Service names them, not its namespace.
	pools []string
	own   bool
	// key by which the Service shares an address; empty for none.
	key string
}

// wishOf reads what a Service asks for. The error is an *ipam.Refusal for what nobody can fulfil.
func (r *Reconciler) wishOf(ctx context.Context, s *corev1.Service) (w wish, err error) {
	w.key = keyOf(s)
	for _, f := range s.Spec.IPFamilies {
		if order, err := ipam.ParseFamilies([]string{string(f)}); err == nil {
			w.families = append(w.families, order[0])
		}
	}
	if len(w.families) == 0 { // a Service without a selector and a cluster IP may have none
		w.families = []ipaddr.Family{ipaddr.IPv4}
	}
	w.required = s.Spec.IPFamilyPolicy == nil || *s.Spec.IPFamilyPolicy != corev1.IPFamilyPolicyPreferDualStack
	field := s.Spec.LoadBalancerIP
	value, key, named := workload.FirstOf(s.Annotations, workload.AddressAnnotation, "metallb.io/loadBalancerIPs",
		"metallb.universe.tf/loadBalancerIPs")
	bad := func(what, text, format string, args ...any) (wish, error) {
		w.addrs = nil
		return w, ipam.Refuse(ipam.ReasonInvalidAnnotation, "%s %q: %s", what, text, fmt.Sprintf(format, args...)).
			WithHint("name one address of each of the Service's families at most, in one place")
	}
	switch {
	case named && field != "" && field != value:
		return bad("annotation "+key, value, "spec.loadBalancerIP says %q", field)
	case !named:
		key, value = "spec.loadBalancerIP", field
	}
	w.addrs = map[ipaddr.Family]netip.Addr{}
	for text := range strings.SplitSeq(value, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return bad(key, value, "%q is not one address", text)
		}
		a = a.Unmap()
		f := ipaddr.FamilyOf(a)
		switch {
		case !slices.Contains(w.families, f):
			return bad(key, value, "the Service's ipFamilies do not have %s", f)
		case w.addrs[f].IsValid():
			return bad(key, value, "it names two addresses of %s", f)
		}
		w.addrs[f] = a
	}
	w.pools, w.own, err = r.Owners.PoolsOfService(ctx, s.Namespace, s.Annotations)
	return w, err
}

// poolsFor returns the pools for an address of a family: those named, else that of the address asked for.
func (r *Reconciler) poolsFor(w wish, a netip.Addr) ([]string, *ipam.Refusal) {
	if len(w.pools) > 0 {
		return w.pools, nil
	}
	if !a.IsValid() {
		return nil, ipam.Refuse(reasonNoPool, "neither the Service nor its namespace names a pool").
			WithHint("annotate one of them: %s=POOL", workload.PoolAnnotation)
	}
	pool, ok := r.holders.Index.Pools.OwnerOf(a)
	if !ok {
		return nil, ipam.Refuse(ipam.ReasonAddressNotInPool, "address %s is in no pool", a).
			WithHint("ask for another address, or for none")
	}
	return []string{pool}, nil
}
