package attacks_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
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
