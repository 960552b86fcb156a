package attacks_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
)

// claimants are attacks by what a kubelet says of its Node.
func claimants() []attack { return []attack{{"pool_that_a_Node_claims", claimedPool}} }

// A kubelet gives its Node more addresses, and asks by each of them in turn: a pool's maxPerHost is for the machine.
func manyAddresses(t *testing.T, w *world) {
	const node, most = "node-many", 2
	own := []string{"10.77.0.41", "10.77.0.42", "10.77.0.43"}
	w.create(t, &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: v1.BCSNetPoolSpec{
		Net: "10.85.0.0", Mask: 24, Gateway: "10.85.0.1", HostSubnets: []string{"10.77.0.40/29"}, MaxPerHost: most,
		AvailableIPs: []string{"10.85.0.10-10.85.0.29"},
	}})
	w.plugin(t, node, own[0], "plugin-many")
	token := w.token(t, "plugin", "plugin-many")
	var n corev1.Node
	if err := shared.admin.Get(t.Context(), client.ObjectKey{Name: node}, &n); err != nil {
		t.Fatal(err)
	}
	for _, a := range own[1:] {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	n.ResourceVersion = "" // the controller may have written the Node's capacity meanwhile
	if err := kubelet(t, node).Status().Update(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	got := 0
	for i := range 3 * most {
		name, host := fmt.Sprintf("many-%d", i), own[i%len(own)]
		w.pod(t, shop, name, node, "")
		var h heard
		controlplane.Eventually(t, func() (err error) { // the controller knows the Node's addresses, and the pod
			h, err = w.trySend(t.Context(), ask{token: token, method: "POST", path: prefix, body: w.add(name, host)})
			if err == nil && h.Code != 0 && h.Reason != ipam.ReasonHostFull {
				err = errors.New(h.text)
			}
			return err
		})
		if h.Code == 0 {
			got++
		}
	}
	if got != most {
		t.Errorf("one machine has %d addresses of the pool, want %d", got, most)
	}
}

// A kubelet labels its own Node. It cannot set the labels that Kubernetes keeps from kubelets, which is what pools for
// certain nodes should select by.
func ownLabels(t *testing.T, w *world) {
	const label = "node-restriction.kubernetes.io/lan"
	w.create(t, &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "chosen"}, Spec: v1.BCSNetPoolSpec{
		Net: "10.86.0.0", Mask: 24, Gateway: "10.86.0.1", AvailableIPs: []string{"10.86.0.10-10.86.0.29"},
		HostSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "gold"}},
	}})
	patch := []byte(fmt.Sprintf(`{"metadata":{"labels":{%q:"gold"}}}`, label))
	err := kubelet(t, nodeMine).Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeMine}},
		client.RawPatch(types.MergePatchType, patch))
	if !apierrors.IsForbidden(err) {
		t.Errorf("its kubelet labels its Node: %v", err)
	}
	w.create(t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "choosy", Annotations: map[string]string{
			"networkextension.bkbcs.tencent.com/pool": "chosen",
		}},
		Spec: corev1.PodSpec{NodeName: nodeMine, Containers: []corev1.Container{{Name: "main", Image: "main"}}},
	})
	w.send(t, ask{token: w.node, method: "POST", path: prefix, body: w.add("choosy", mine)}).
		refused(t, "ADD", ipam.ReasonHostNotInPool)
}

// A kubelet reports another node's address as its own, and annotates its Node with a gateway. If Nodes name gateways,
// that node's pods keep theirs.
func falseGateway(t *testing.T, w *world) {
	c := started(t, func(o *controller.Options) { o.GatewaySource = "host" })
	for _, node := range []string{"node-alike", "zz-node-alike"} { // before the other node's name, and behind it
		w.makeNode(t, node, "10.77.0.51")
		patch := []byte(`{"metadata":{"annotations":{"netservicecontroller.bkbcs.tencent.com/gateway":"10.78.0.66"}}}`)
		kubelet := kubelet(t, node)
		var n corev1.Node
		if err := errors.Join(
			kubelet.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}},
				client.RawPatch(types.MergePatchType, patch)),
			kubelet.Get(t.Context(), client.ObjectKey{Name: node}, &n)); err != nil {
			t.Fatal(err)
		}
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: theirs})
		n.ResourceVersion = ""
		if err := kubelet.Status().Update(t.Context(), &n); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		for _, node := range []string{"node-alike", "zz-node-alike"} {
			if err := shared.admin.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}); err != nil {
				t.Error(err)
			}
		}
	}()
	w.marks(t, c, "node-marks", "10.77.0.52")
	body := w.podWith(t, shop, "gated", nil)
	h := w.send(t, ask{to: c, token: w.theirNode, method: "POST", path: prefix, body: body})
	if got := h.done(t, "ADD")["gateway"]; got == "10.78.0.66" {
		t.Errorf("another node's pod gets the gateway %v", got)
	}
	w.ends(t, body)
}

// A kubelet reports the addresses of a pool as its Node's, all of them. Pods get those beyond the ones that count.
func claimedPool(t *testing.T, w *world) {
	const node, size = "node-greedy", 128
	w.create(t, &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "claimed"}, Spec: v1.BCSNetPoolSpec{
		Net: "10.90.0.0", Mask: 24, Gateway: "10.90.0.1", Hosts: []string{theirs}, Priority: -6,
		AvailableIPs: []string{fmt.Sprintf("10.90.0.10-10.90.0.%d", 10+size-1)},
	}})
	w.makeNode(t, node, "10.77.0.53")
	var n corev1.Node
	if err := shared.admin.Get(t.Context(), client.ObjectKey{Name: node}, &n); err != nil {
		t.Fatal(err)
	}
	for i := range size {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{
			Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.90.0.%d", 10+i),
		})
	}
	n.ResourceVersion = "" // the controller may have written the Node's capacity meanwhile
	if err := kubelet(t, node).Status().Update(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	w.marks(t, shared.shipped, "node-marks-greedy", "10.77.0.54")
	for i := range 3 {
		body := w.podWith(t, shop, fmt.Sprintf("modest-%d", i), map[string]string{
			"networkextension.bkbcs.tencent.com/pool": "claimed",
		})
		w.adds(t, body).done(t, "a pod of another node")
		w.ends(t, body)
	}
}

// marks makes a Node, and waits until a replica knows it, and with it the Nodes that were changed before.
func (w *world) marks(t *testing.T, to *inprocess.Controller, node, host string) {
	t.Helper()
	w.plugin(t, node, host, "plugin-of-"+node)
	token := w.token(t, "plugin", "plugin-of-"+node)
	controlplane.Eventually(t, func() error {
		h, err := w.trySend(t.Context(), ask{to: to, token: token, method: "GET", path: prefix + "/host/" + host})
		if err == nil && h.Code != 0 {
			err = errors.New(h.text)
		}
		return err
	})
}
