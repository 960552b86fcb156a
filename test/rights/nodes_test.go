package rights

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// nodePolicy is the policy of what is written of Nodes.
const nodePolicy = "bcsnet-nodes"

// nodeSide returns a client of the node side with a token that names a node; empty for one that names none.
func nodeSide(t *testing.T, node string) client.Client {
	t.Helper()
	cfg := configAs(serviceAccount(system, "bcsnet-node"), "system:serviceaccounts", "system:serviceaccounts:"+system)
	if node != "" {
		cfg.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {node}}
	}
	c, err := clientOf(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// node makes a Node whose kubelet has written its status.
func node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	o := created(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"a": "b"},
	}}).(*corev1.Node)
	numbers := corev1.ResourceList{
		"cpu": resource.MustParse("4"), "example.com/gpu": resource.MustParse("2"), earlier: resource.MustParse("7"),
	}
	o.Status = corev1.NodeStatus{
		Capacity: numbers, Allocatable: numbers,
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.77"}},
		Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		},
	}
	// The controller manager writes the Node, too.
	if err := admin.SubResource("status").Patch(t.Context(), o, statusPatch(types.MergePatchType, o.Status)); err != nil {
		t.Fatal(err)
	}
	return o
}

// earlier is a resource that the controller published under a name that it has no more.
const earlier = "example.com/earlier"

// statusPatch is a patch of a Node, of the kind that the writer uses.
func statusPatch(kind types.PatchType, status any) client.Patch {
	text, _ := json.Marshal(map[string]any{"status": status}) // plain maps
	return client.RawPatch(kind, text)
}

func conditions(all ...map[string]any) any { return map[string]any{"conditions": all} }

func condition(kind, status string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": "Test", "message": "test"}
}

// The node side writes its condition on the Node that its token names, and nothing else; kubelets and administrators
// are not looked at.
func TestNodeSideWritesItsCondition(t *testing.T) {
	ready(t)
	own := node(t, "own-node")
	other := node(t, "other-node")
	const kind = types.StrategicMergePatchType
	ours := func(status string) client.Patch {
		return statusPatch(kind, conditions(condition("BcsnetReady", status)))
	}
	metadata := func(text string) client.Patch {
		return client.RawPatch(kind, []byte(`{"metadata":`+text+`}`))
	}
	for _, test := range []struct {
		what   string
		client client.Client
		node   *corev1.Node
		patch  client.Patch
		ok     bool
	}{
		{"its condition", nodeSide(t, own.Name), own, ours("True"), true},
		{"its condition again", nodeSide(t, own.Name), own, ours("False"), true},
		{"its condition off", nodeSide(t, own.Name), own,
			statusPatch(kind, conditions(map[string]any{"type": "BcsnetReady", "$patch": "delete"})), true},
		{"that of another Node", nodeSide(t, own.Name), other, ours("False"), false},
		{"with a token of no node", nodeSide(t, ""), own, ours("False"), false},
		{"whether the Node is ready", nodeSide(t, own.Name), own, statusPatch(kind, conditions(condition("Ready", "False"))), false},
		{"a condition off", nodeSide(t, own.Name), own,
			statusPatch(kind, conditions(map[string]any{"type": "Ready", "$patch": "delete"})), false},
		{"a further condition", nodeSide(t, own.Name), own,
			statusPatch(kind, conditions(condition("BcsnetReady", "True"), condition("NetworkUnavailable", "True"))), false},
		{"addresses", nodeSide(t, own.Name), own, statusPatch(kind, map[string]any{
			"addresses": []any{map[string]any{"type": "ExternalIP", "address": "10.0.0.78"}},
		}), false},
		{"capacity", nodeSide(t, own.Name), own, statusPatch(kind, map[string]any{"capacity": map[string]any{"cpu": "1"}}), false},
		{"a resource of ours", nodeSide(t, own.Name), own,
			statusPatch(kind, map[string]any{"capacity": map[string]any{"tke.cloud.tencent.com/eni-ip": "1"}}), false},
		{"a field that was not there", nodeSide(t, own.Name), own, statusPatch(kind, map[string]any{"phase": "Running"}), false},
		{"a label", nodeSide(t, own.Name), own, metadata(`{"labels":{"zone":"b"}}`), false},
		{"an annotation", nodeSide(t, own.Name), own,
			metadata(`{"annotations":{"networkextension.bkbcs.tencent.com/host-addresses":"10.0.0.78"}}`), false},
		{"a finalizer", nodeSide(t, own.Name), own, metadata(`{"finalizers":["example.com/mine"]}`), false},
		{"an administrator", admin, own, statusPatch(kind, conditions(condition("Ready", "Unknown"))), true},
	} {
		tryPatch(t, test.what, test.client, test.node, test.patch, test.ok)
	}
}

// The controller writes the resources that the policy names, and takes back what it published before.
func TestControllerWritesItsResources(t *testing.T) {
	ready(t)
	o := node(t, "counted-node")
	const kind = types.MergePatchType
	controller := as(t, serviceAccount(system, controlplane.ControllerName))
	numbers := func(resources map[string]any) client.Patch {
		return statusPatch(kind, map[string]any{"capacity": resources, "allocatable": resources})
	}
	both := map[string]any{"tke.cloud.tencent.com/eni-ip": "42", "netservice.bkbcs.tencent.com/bcsnetip": "42"}
	none := map[string]any{"tke.cloud.tencent.com/eni-ip": nil, "netservice.bkbcs.tencent.com/bcsnetip": nil}
	// What it published under an earlier name is its own by managedFields; the other such number is the kubelet's.
	if err := admin.SubResource("status").Patch(t.Context(), o, numbers(map[string]any{earlier: "8"}),
		client.FieldOwner("bcsnet-controller-capacity")); err != nil {
		t.Fatal(err)
	}
	gpu := map[string]any{"example.com/gpu": "9"}
	with := func(more map[string]any) map[string]any {
		all := maps.Clone(both)
		maps.Copy(all, more)
		return all
	}
	for _, test := range []struct {
		what  string
		patch client.Patch
		ok    bool
	}{
		{"its numbers", numbers(both), true},
		{"its numbers again", numbers(map[string]any{"tke.cloud.tencent.com/eni-ip": "0"}), true},
		{"another number", numbers(gpu), false},
		{"another number beside", numbers(with(gpu)), false},
		{"another number off", numbers(map[string]any{"example.com/gpu": nil}), false},
		{"a further resource", numbers(map[string]any{"example.com/new": "1"}), false},
		{"processors", numbers(map[string]any{"cpu": "400"}), false},
		{"an earlier name, changed", numbers(map[string]any{earlier: "9"}), false},
		{"an earlier name, off", numbers(with(map[string]any{earlier: nil})), true},
		{"its numbers off", numbers(none), true},
		{"a condition", statusPatch(kind, conditions(condition("Ready", "False"))), false},
		{"addresses", statusPatch(kind, map[string]any{"addresses": []any{}}), false},
		{"an annotation", client.RawPatch(kind, []byte(`{"metadata":{"annotations":{"x":"y"}}}`)), false},
	} {
		tryPatch(t, test.what, controller, o, test.patch, test.ok)
	}
}

// tryPatch patches the status of a Node, and fails the test unless it was done, or refused by the policy.
func tryPatch(t *testing.T, what string, c client.Client, o *corev1.Node, p client.Patch, ok bool) {
	t.Helper()
	err := c.SubResource("status").Patch(t.Context(), o.DeepCopy(), p)
	if ok && err != nil || !ok && !refusedBy(err, nodePolicy) {
		t.Errorf("%s: %v, want it done: %t", what, err, ok)
	}
}

// A refusal names the Node that it is about.
func TestRefusalOfNodes(t *testing.T) {
	ready(t)
	o := node(t, "refusing-node")
	err := nodeSide(t, "elsewhere").SubResource("status").Patch(t.Context(), o,
		statusPatch(types.StrategicMergePatchType, conditions(condition("BcsnetReady", "True"))))
	if !apierrors.IsForbidden(err) || !strings.Contains(fmt.Sprint(err), "not the status of refusing-node") {
		t.Error(err)
	}
}

// A kubelet writes its own Node, but for the annotation by which a node acts for further hosts: an operator sets that.
func TestKubeletAnnotatesNoHosts(t *testing.T) {
	ready(t)
	o := node(t, "annotated-node")
	const annotation = hosts.Annotation
	kubelet := as(t, "system:node:"+o.Name, "system:nodes")
	metadata := func(name string, value any) client.Patch {
		text, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{name: value}}})
		return client.RawPatch(types.MergePatchType, text)
	}
	status := statusPatch(types.StrategicMergePatchType, conditions(condition("Ready", "True")))
	for _, test := range []struct {
		what   string
		client client.Client
		patch  client.Patch
		ok     bool
	}{
		{"a kubelet, its own status", kubelet, status, true},
		{"a kubelet, another annotation", kubelet, metadata("a", "c"), true},
		{"a kubelet", kubelet, metadata(annotation, "10.0.0.78"), false},
		{"an administrator", admin, metadata(annotation, "10.0.0.78"), true},
		{"a kubelet, its own status beside it", kubelet, status, true},
		{"a kubelet, with one more", kubelet, metadata(annotation, "10.0.0.78,10.0.0.79"), false},
		{"a kubelet, off", kubelet, metadata(annotation, nil), false},
		{"an administrator, off", admin, metadata(annotation, nil), true},
	} {
		tryPatch(t, test.what+", as status", test.client, o, test.patch, test.ok)
		err := test.client.Patch(t.Context(), o.DeepCopy(), test.patch)
		if test.ok && err != nil || !test.ok && !refusedBy(err, nodePolicy) {
			t.Errorf("%s: %v, want it done: %t", test.what, err, test.ok)
		}
	}
	fresh := func(name, value string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"a": "b"}}}
		if value != "" {
			n.Annotations[annotation] = value
		}
		return n
	}
	newcomer := as(t, "system:node:new-node", "system:nodes")
	if err := newcomer.Create(t.Context(), fresh("new-node", "10.0.0.78")); !refusedBy(err, nodePolicy) {
		t.Errorf("a kubelet registers with it: %v", err)
	}
	if err := newcomer.Create(t.Context(), fresh("new-node", ""), client.DryRunAll); err != nil {
		t.Errorf("a kubelet registers: %v", err)
	}
	if err := admin.Create(t.Context(), fresh("new-node", "10.0.0.78"), client.DryRunAll); err != nil {
		t.Errorf("an administrator makes one with it: %v", err)
	}
}
