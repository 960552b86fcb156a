package recovery

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/bcsnet/bcsnet/pkg/workload"
)

// OfServices yields the addresses that Services of ours have by their status, each once for a namespace: one that is
// shared is that of the oldest.
func OfServices(all []corev1.Service) iter.Seq[Object] {
	return func(yield func(Object) bool) {
		type shared struct {
			namespace string
			addr      netip.Addr
		}
		seen := map[shared]bool{}
		for _, s := range slices.SortedFunc(slices.Values(all), func(a, b corev1.Service) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		}) {
			if meta.FindStatusCondition(s.Status.Conditions, workload.ServiceCondition) == nil {
				continue
			}
			owner := workload.OwnerObject{Kind: workload.OwnerService, Namespace: s.Namespace, Name: s.Name}.String()
			for _, ingress := range s.Status.LoadBalancer.Ingress {
				a, err := netip.ParseAddr(ingress.IP)
				if at := (shared{s.Namespace, a}); err != nil || seen[at] {
					continue
				}
				seen[shared{s.Namespace, a}] = true
				if !yield(Object{Owner: owner, Namespace: s.Namespace, Addr: a}) {
					return
				}
			}
		}
	}
}
