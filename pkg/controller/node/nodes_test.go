package node

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
)

// A node asks for its own addresses and those that its annotation has; what cannot be read there is none.
func TestHosts(t *testing.T) {
	t.Parallel()
	n := New(index.New().Pools, func([]netip.Addr, []string) {}, time.Now)
	o := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", Annotations: map[string]string{hosts.Annotation: "10.8.0.11, x,,fd00:8::11,10.8.0.11", "other": "x"},
		},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.11"}}},
	}
	own := func() (all []string) {
		for _, a := range n.Hosts("n") {
			all = append(all, a.String())
		}
		return all
	}
	n.Set(Trim(o, nil))
	if diff := cmp.Diff([]string{"10.0.0.11", "10.8.0.11", "fd00:8::11"}, own()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	other := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "m"},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.8.0.11"}}},
	}
	n.Set(other)
	if diff := cmp.Diff([]string{"10.0.0.11", "fd00:8::11"}, own()); diff != "" {
		t.Errorf("an address in the annotation is another node's own (-want +got):\n%s", diff)
	}
	for host, want := range map[string]bool{"10.0.0.11": true, "fd00:8::11": true, "10.8.0.11": true, "10.0.0.12": false} {
		if got := n.Known(netip.MustParseAddr(host)); got != want {
			t.Errorf("%s is a host: %t", host, got)
		}
	}
	n.Remove(other)
	o.Annotations = nil
	n.Set(Trim(o, nil))
	if diff := cmp.Diff([]string{"10.0.0.11"}, own()); diff != "" {
		t.Errorf("without the annotation (-want +got):\n%s", diff)
	}
	n.Remove(o)
	if got := own(); len(got) != 0 {
		t.Errorf("removed: %v", got)
	}
}

// A further address that two nodes were given is neither's: a kubelet may have annotated its own Node with it.
func TestHostsThatTwoWereGiven(t *testing.T) {
	t.Parallel()
	n := New(index.New().Pools, func([]netip.Addr, []string) {}, time.Now)
	annotated := func(name, further string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{hosts.Annotation: further},
		}}
	}
	shared := netip.MustParseAddr("10.8.0.11")
	want := func(when string, nodes ...string) {
		t.Helper()
		for _, name := range []string{"a", "b"} {
			if got := slices.Contains(n.Hosts(name), shared); got != slices.Contains(nodes, name) {
				t.Errorf("%s: %s has it: %t", when, name, got)
			}
		}
	}
	b := annotated("b", "10.8.0.11,10.8.0.12")
	n.Set(b)
	n.Set(b)
	want("one", "b")
	n.Set(annotated("a", "10.8.0.11"))
	want("both")
	if got := n.Hosts("b"); !slices.Contains(got, netip.MustParseAddr("10.8.0.12")) {
		t.Errorf("b has %v", got)
	}
	if !n.Known(shared) {
		t.Error("it is a host's no more")
	}
	n.Set(annotated("a", "10.8.0.13"))
	want("taken back", "b")
	n.Remove(b)
	n.Set(annotated("a", "10.8.0.11"))
	want("the other is gone", "a")
	n.Remove(annotated("a", ""))
	if n.Known(shared) {
		t.Error("it is a host's still")
	}
}
