package recovery

import (
	"iter"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/workload"
)

// OfServices yields the addresses that Services of ours have by their status, each once for a namespace: one that is
// shared is that of the oldest.
func OfServices(all []corev1.Service) iter.Seq[Object] {
	type shared struct {
		namespace string
		addr      netip.Addr
	}
	return func(yield func(Object) bool) {
		ours, seen := []*corev1.Service(nil), map[shared]bool{}
		for i := range all {
			if workload.IsMarked(&all[i]) {
				ours = append(ours, &all[i])
			}
		}
		for _, s := range slices.SortedFunc(slices.Values(ours), workload.ByAge) {
			owner := workload.OwnerObject{Kind: workload.OwnerService, Namespace: s.Namespace, Name: s.Name}.String()
			for _, a := range workload.ShownBy(s) {
				at := shared{s.Namespace, a}
				if !seen[at] && !yield(Object{Owner: owner, Namespace: s.Namespace, Addr: a}) {
					return
				}
				seen[at] = true
			}
		}
	}
}
