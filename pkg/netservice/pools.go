package netservice

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// NewPools returns the pools that are missing here. They are cordoned: they allocate nothing until the leases are taken
// over and somebody ends that.
func NewPools(old []Pool, exists func(name string) bool) (missing []v1.BCSNetPool) {
	for _, p := range old {
		if exists(p.Name) {
			continue
		}
		missing = append(missing, v1.BCSNetPool{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "BCSNetPool"},
			ObjectMeta: metav1.ObjectMeta{Name: p.Name},
			Spec: v1.BCSNetPoolSpec{
				Net: p.Spec.Net, Mask: p.Spec.Mask, Gateway: p.Spec.Gateway, Hosts: p.Spec.Hosts,
				AvailableIPs: p.Spec.AvailableIPs, Cordoned: true,
			},
		})
	}
	return missing
}
