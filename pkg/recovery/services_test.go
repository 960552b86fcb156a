package recovery

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/workload"
)

// The addresses of Services of ours count, each once for a namespace.
func TestOfServices(t *testing.T) {
	service := func(name string, ours bool, addrs ...string) (s corev1.Service) {
		s.Namespace, s.Name = "shop", name
		if ours {
			s.Status.Conditions = []metav1.Condition{{Type: workload.ServiceCondition}}
		}
		for _, a := range addrs {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a})
		}
		return s
	}
	var got []string
	for o := range OfServices([]corev1.Service{
		service("a", true, "10.0.0.1", "fd00::1"), service("shares", true, "10.0.0.1"), service("other", false, "10.0.0.2"),
		service("none", true), service("odd", true, "nonsense"),
	}) {
		got = append(got, o.Namespace+" "+o.Owner+" "+o.Addr.String())
	}
	want := []string{"shop service/shop/a 10.0.0.1", "shop service/shop/a fd00::1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
