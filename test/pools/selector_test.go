package pools_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/plugin"
)

// rackNode makes a node of a rack with addresses of a kind.
func rackNode(t *testing.T, name, rack string, kind corev1.NodeAddressType, addrs ...string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"rack": rack}}}
	if err := admin.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.IgnoreNotFound(admin.Delete(context.Background(), node)) })
	for _, a := range addrs {
		node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: kind, Address: a})
	}
	if err := admin.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	return node
}

// relabel puts a node into another rack.
func relabel(t *testing.T, node *corev1.Node, rack string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"rack":%q}}}`, rack)
	if err := admin.Patch(t.Context(), node, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// askFrom sends an ADD or a DEL for a pod from a host.
func askFrom(t *testing.T, method, from, pod string) plugin.Answer {
	t.Helper()
	a, err := plugin.Ask(t.Context(), caller, method, controller.URL, wire.AllocateRequest{
		Host: from, ContainerID: "sandbox-" + pod, PodName: pod, PodNamespace: "default",
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func wantHosts(t *testing.T, p *v1.BCSNetPool, want int64) {
	t.Helper()
	controlplane.EventuallyWithin(t, patience, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if p.Status.Hosts != want {
			return fmt.Errorf("pool %s is for %d hosts, want %d", p.Name, p.Status.Hosts, want)
		}
		return nil
	})
}

// TestSlash64: a pool of a whole /64 makes its objects on demand, and the answer has the prefix length of the subnet.
func TestSlash64(t *testing.T) {
	p := newPool(t, "slash64", func(s *v1.BCSNetPoolSpec) {
		s.Net, s.Mask, s.Gateway = "fd00:40::", 48, "fd00:40::1"
	}, "fd00:40:0:1::/64")
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	wantStatus(t, p, math.MaxInt64, math.MaxInt64, 0)
	wantObjects(t, p.Name)
	newPod(t, "slash64-0")
	newPod(t, "slash64-1")
	first := ask(t, http.MethodPost, "slash64-0", "")
	if a := first.Address; first.Code != 0 || a.Mask != 48 || a.Gateway != "fd00:40::1" || a.Pool != p.Name ||
		!netip.MustParsePrefix("fd00:40:0:1::/64").Contains(netip.MustParseAddr(a.IPAddr)) {
		t.Fatalf("got %+v, %s", a, first.Message)
	}
	const last = "fd00:40:0:1:ffff:ffff:ffff:fffe"
	if a := ask(t, http.MethodPost, "slash64-1", last); a.Code != 0 || a.Address.IPAddr != last || a.Address.Mask != 48 {
		t.Errorf("got %+v", a)
	}
	object := func(addr string) string {
		return strings.ReplaceAll(netip.MustParseAddr(addr).StringExpanded(), ":", "-")
	}
	wantObjects(t, p.Name, object(first.Address.IPAddr), object(last))
	wantStatus(t, p, math.MaxInt64, math.MaxInt64, 2)
	for _, pod := range []string{"slash64-0", "slash64-1"} {
		if a := ask(t, http.MethodDelete, pod, ""); a.Code != 0 {
			t.Error(a.Message)
		}
	}
}

// TestHostSelector: nodes come into a pool and leave it by their labels, and what their pods have stays.
func TestHostSelector(t *testing.T) {
	p := newPool(t, "by-rack", func(s *v1.BCSNetPoolSpec) {
		s.Hosts, s.HostSelector = nil, &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "7"}}
	}, "10.40.0.20-10.40.0.29")
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonNoHosts, "no node matches hostSelector rack=7",
		"kubectl get nodes -l 'rack=7'")
	rackNode(t, "rack-outside", "7", corev1.NodeExternalIP, "192.0.2.99")
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonNoHosts,
		"hostSelector rack=7 matches 1 node without an InternalIP")
	const from = "192.0.2.70"
	node := rackNode(t, "rack-7a", "8", corev1.NodeInternalIP, from)
	newPod(t, "by-rack-0")
	newPod(t, "by-rack-1")
	if a := askFrom(t, http.MethodPost, from, "by-rack-0"); a.Reason != "HostNotInPool" {
		t.Fatalf("a node of another rack: %+v", a)
	}
	relabel(t, node, "7")
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady, "10 addresses for 1 host",
		"with 1 node of hostSelector rack=7")
	first := askFrom(t, http.MethodPost, from, "by-rack-0")
	if first.Code != 0 {
		t.Fatal(first.Message)
	}
	twin := rackNode(t, "rack-7b", "7", corev1.NodeInternalIP, from) // the same machine under a new name
	wantHosts(t, p, 2)
	relabel(t, node, "8")
	wantHosts(t, p, 2) // the other node of the address matches still
	if a := askFrom(t, http.MethodPost, from, "by-rack-1"); a.Code != 0 {
		t.Errorf("one of the two nodes of an address matches: %s", a.Message)
	}
	if a := askFrom(t, http.MethodDelete, from, "by-rack-1"); a.Code != 0 {
		t.Error(a.Message)
	}

	// Relabelled, it draws no more, and its pod keeps what it has.
	relabel(t, twin, "9")
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonNoHosts)
	if a := askFrom(t, http.MethodPost, from, "by-rack-0"); a.Code != 0 || a.Address.IPAddr != first.Address.IPAddr {
		t.Errorf("the repeated request got %+v", a)
	}
	if a := askFrom(t, http.MethodPost, from, "by-rack-1"); a.Reason != "HostNotInPool" {
		t.Errorf("a new pod got %+v", a)
	}
	wantStatus(t, p, 10, 9, 1)

	// Beside a selector that matches nothing, hosts and subnets count.
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.HostSubnets = []string{from + "/32"} })
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady,
		"hostSelector rack=7 matches 1 node without an InternalIP")
	if a := askFrom(t, http.MethodPost, from, "by-rack-1"); a.Code != 0 {
		t.Errorf("in a host subnet: %s", a.Message)
	}
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.HostSubnets = nil })
	for _, pod := range []string{"by-rack-0", "by-rack-1"} {
		if a := askFrom(t, http.MethodDelete, from, pod); a.Code != 0 {
			t.Error(a.Message)
		}
	}
}
