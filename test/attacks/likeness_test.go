package attacks_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
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
)

// likenesses are attacks by who has taken a node over and passes for another pod, or for more hosts than it is.
func likenesses() []attack {
	return []attack{
		{"static_pod_with_the_UID_of_another", anothersUID}, {"UID_of_another_nodes_pod", namedUID},
		{"container_of_another_on_another_interface", anotherInterface}, {"host_of_many_addresses", manyAddresses},
		{"labels_of_the_own_node", ownLabels}, {"conflicts_that_empty_a_pool", falseConflicts},
		{"gateway_for_another_nodes_pods", falseGateway},
	}
}

// kubelet returns a client with the rights of a node's kubelet.
func kubelet(t *testing.T, node string) client.Client {
	t.Helper()
	cfg, err := shared.cluster.NodeConfig(node)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mirror makes the mirror of a static pod, as a node's kubelet does.
func (w *world) mirror(t *testing.T, node, name, hash string, annotations map[string]string) {
	t.Helper()
	var n corev1.Node
	if err := shared.admin.Get(t.Context(), client.ObjectKey{Name: node}, &n); err != nil {
		t.Fatal(err)
	}
	o := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: shop, Name: name, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: node, UID: n.UID, Controller: new(true),
			}},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "main"}}},
	}
	metav1.SetMetaDataAnnotation(&o.ObjectMeta, "kubernetes.io/config.mirror", hash)
	metav1.SetMetaDataAnnotation(&o.ObjectMeta, "kubernetes.io/config.hash", hash)
	if err := kubelet(t, node).Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// The UID of a static pod is what its kubelet says. A kubelet that says that of another node's static pod gets another
// address, and neither pod's requests and releases touch the other's.
func anothersUID(t *testing.T, w *world) {
	hash := strings.Repeat("5", 32)
	w.mirror(t, nodeTheirs, "static-theirs", hash, nil)
	w.mirror(t, nodeMine, "static-mine", hash, nil)
	victim, thief := w.add("static-theirs", theirs), w.add("static-mine", mine)
	address := w.adds(t, victim).done(t, "ADD of the victim")["ipAddr"].(string)
	steal := func() {
		t.Helper()
		h := w.send(t, ask{token: w.node, method: "POST", path: prefix, body: thief})
		if got := h.done(t, "ADD of its likeness")["ipAddr"]; got == address {
			t.Errorf("the pod of another node got %s", address)
		}
	}
	end := func() {
		t.Helper()
		h := w.send(t, ask{token: w.node, method: "DELETE", path: prefix, body: thief})
		if ips := fmt.Sprint(h.done(t, "DEL of its likeness")["ips"]); strings.Contains(ips, address) {
			t.Errorf("its DEL released %s", ips)
		}
	}
	steal()
	for _, to := range w.replicas() {
		w.hears(t, to, w.theirNode, victim, address)
	}
	for i := range 70 { // the victim is not charged for the interfaces of its likeness
		w.send(t, ask{token: w.node, method: "POST", path: prefix, body: with(thief, "ifName", fmt.Sprintf("net%d", i))})
	}
	w.adds(t, with(victim, "ifName", "net1")).done(t, "another interface of the victim")
	w.ends(t, with(victim, "ifName", "net1"))
	end()
	w.hears(t, shared.shipped, w.theirNode, victim, address)
	w.ends(t, victim)
}

// The UID in a request is that of the pod that it names, or the request is refused.
func namedUID(t *testing.T, w *world) {
	var pod corev1.Pod
	if err := shared.admin.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: "web-theirs"}, &pod); err != nil {
		t.Fatal(err)
	}
	body := with(w.add("web-mine", mine), "podUID", string(pod.UID))
	w.send(t, ask{token: w.node, method: "POST", path: prefix, body: body}).refused(t, "ADD", ipam.ReasonPodReplaced)
	h := w.send(t, ask{token: w.node, method: "DELETE", path: prefix, body: body})
	if ips := h.done(t, "DEL")["ips"].([]any); len(ips) > 0 {
		t.Errorf("DEL released %v", ips)
	}
}

// A lease of the attacker's pod with the ID of the victim's container, on another interface, changes nothing for the
// victim: its DEL of all interfaces releases its own.
func anotherInterface(t *testing.T, w *world) {
	body := with(w.add("web-mine", mine), "containerID", w.victim["containerID"], "ifName", "net9")
	w.send(t, ask{token: w.node, method: "POST", path: prefix, body: body})
	w.untouched(t)
	h := w.send(t, ask{token: w.node, method: "DELETE", path: prefix, body: with(body, "ifName", "")})
	if ips := fmt.Sprint(h.done(t, "DEL")["ips"]); strings.Contains(ips, w.address) {
		t.Errorf("DEL released %s", ips)
	}
}

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

// A node takes one address after the other and says that somebody else answers for it. Most of the pool stays.
func falseConflicts(t *testing.T, w *world) {
	const size, pool = 20, "networkextension.bkbcs.tencent.com/pool"
	w.create(t, &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "fragile"}, Spec: v1.BCSNetPoolSpec{
		Net: "10.87.0.0", Mask: 24, Gateway: "10.87.0.1", Hosts: []string{mine, theirs}, Priority: -4,
		AvailableIPs: []string{fmt.Sprintf("10.87.0.20-10.87.0.%d", 20+size-1)},
	}})
	for i := range size {
		name := fmt.Sprintf("liar-%d", i)
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name, Annotations: map[string]string{pool: "fragile"}},
			Spec:       corev1.PodSpec{NodeName: nodeMine, Containers: []corev1.Container{{Name: "main", Image: "main"}}},
		}
		w.create(t, p)
		t.Cleanup(func() { _ = shared.admin.Delete(context.Background(), p, client.GracePeriodSeconds(0)) })
		body := w.add(name, mine)
		address := w.send(t, ask{token: w.node, method: "POST", path: prefix, body: body}).done(t, "ADD")["ipAddr"]
		w.send(t, ask{token: w.node, method: http.MethodPost, path: fmt.Sprintf("%s/ip/%s/conflict", prefix, address),
			body: object{"containerID": body["containerID"], "mac": fmt.Sprintf("02:00:5e:10:01:%02x", i)}})
		w.send(t, ask{token: w.node, method: "DELETE", path: prefix, body: body}).done(t, "DEL")
	}
	var all v1.BCSNetIPList
	if err := shared.admin.List(t.Context(), &all, client.MatchingFields{"spec.pool": "fragile"}); err != nil {
		t.Fatal(err)
	}
	quarantined := 0
	for _, o := range all.Items {
		if o.Status.Status == v1.IPReserved {
			quarantined++
		}
	}
	if quarantined > 5 || len(all.Items) != size {
		t.Errorf("%d of %d addresses are quarantined", quarantined, len(all.Items))
	}
	w.adds(t, w.podWith(t, shop, "honest", map[string]string{pool: "fragile"})).done(t, "a pod of another node")
}

// A kubelet reports another node's address as its own, and annotates its Node with a gateway. Where Nodes name gateways,
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
	w.plugin(t, "node-marks", "10.77.0.52", "plugin-marks") // seen after the others
	marks := w.token(t, "plugin", "plugin-marks")
	controlplane.Eventually(t, func() error {
		h, err := w.trySend(t.Context(), ask{to: c, token: marks, method: "GET", path: prefix + "/host/10.77.0.52"})
		if err == nil && h.Code != 0 {
			err = errors.New(h.text)
		}
		return err
	})
	body := w.podWith(t, shop, "gated", nil)
	h := w.send(t, ask{to: c, token: w.theirNode, method: "POST", path: prefix, body: body})
	if got := h.done(t, "ADD")["gateway"]; got == "10.78.0.66" {
		t.Errorf("another node's pod gets the gateway %v", got)
	}
	w.ends(t, body)
}
