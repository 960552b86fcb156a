package workload

import (
	"cmp"
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

const (
	// ServiceClass is the loadBalancerClass of the Services that get addresses.
	ServiceClass = ownPrefix + "bcsnet"
	// ServiceCondition says whether a Service has its addresses. A Service that has it was given some, or asked for
	// some, and nobody has seen to its end yet.
	ServiceCondition = ownPrefix + "Addresses"
)

// Annotations of Services.
const (
	// PoolAnnotation names pools.
	PoolAnnotation = ownPrefix + "pool"
	// AddressAnnotation names addresses.
	AddressAnnotation = ownPrefix + "ip"
	// SharingAnnotation is the key by which Services share an address.
	SharingAnnotation = ownPrefix + "sharing-key"
)

// PoolsOfService returns the pools that a Service draws from, by an annotation of its own or of its namespace; none if
// neither names any. own reports whether the Service itself names them. The error is an *ipam.Refusal if an annotation
// cannot be read.
func (o *Owners) PoolsOfService(
	ctx context.Context, namespace string, annotations map[string]string,
) (pools []string, own bool, err error) {
	value, own := annotations[PoolAnnotation]
	if !own {
		defaults, err := o.defaults(ctx, namespace)
		if err != nil {
			return nil, false, err
		}
		var named bool
		if value, named = defaults[PoolAnnotation]; !named {
			return nil, false, nil
		}
	}
	m, err := readPools(value)
	if err != nil {
		return nil, own, ipam.Refuse(ipam.ReasonInvalidAnnotation, "the annotation for the pool is %q: %s", clip(value),
			clipMiddle(err.Error())).WithHint("name a BCSNetPool by the annotation %s of the Service or its namespace",
			PoolAnnotation)
	}
	return m.pools, own, nil
}

// IsMarked reports whether a Service was given addresses, or asked for some, and nobody has seen to its end yet.
func IsMarked(s *corev1.Service) bool {
	return meta.FindStatusCondition(s.Status.Conditions, ServiceCondition) != nil
}

// ShownBy returns the addresses in the status of a Service.
func ShownBy(s *corev1.Service) (all []netip.Addr) {
	for _, i := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(i.IP); err == nil {
			all = append(all, a)
		}
	}
	return all
}

// ByAge orders Services by their age, and then by name.
func ByAge(a, b *corev1.Service) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// FirstOf returns the value of the first of some annotations that an object has.
func FirstOf(annotations map[string]string, keys ...string) (value, key string, ok bool) {
	for _, key := range keys {
		if value, ok := annotations[key]; ok {
			return value, key, true
		}
	}
	return "", "", false
}
