package node

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam/index"
)

// The gateway of a node's annotation counts for an address that other nodes claim only if these name the same one.
func TestGatewayOfAHostThatTwoClaim(t *testing.T) {
	t.Parallel()
	host := netip.MustParseAddr("10.0.0.11")
	for name, tc := range map[string]struct{ first, second, want string }{
		"the same":               {"10.1.0.2", "10.1.0.2", "10.1.0.2"},
		"another":                {"10.1.0.2", "10.1.0.3", "invalid IP"},
		"the first by name only": {"10.1.0.2", "", "invalid IP"},
		"the second only":        {"", "10.1.0.2", "invalid IP"},
		"none":                   {"", "", "invalid IP"},
	} {
		n := New(index.New().Pools, func([]netip.Addr, []string) {}, time.Now)
		claims := func(node, gateway string) *corev1.Node {
			return &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: node, Annotations: map[string]string{GatewayAnnotation: gateway}},
				Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{
					Type: corev1.NodeInternalIP, Address: host.String(),
				}}},
			}
		}
		second := claims("b", tc.second)
		n.Set(claims("a", tc.first))
		n.Set(second)
		if got := n.Gateway(host).String(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		n.Remove(second)
		if got, _ := netip.ParseAddr(tc.first); n.Gateway(host) != got {
			t.Errorf("%s: alone it is %s", name, n.Gateway(host))
		}
	}
}
